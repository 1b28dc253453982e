import java.math.BigDecimal;
import java.util.*;
import org.apache.paimon.data.*;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.format.*;
import org.apache.paimon.fs.*;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.options.Options;
import org.apache.paimon.types.*;

/** Writes the same rows with each of Paimon's own file formats. */
public class FormatProbe {
    public static void main(String[] args) throws Exception {
        String folder = args[0];
        for (String format : new String[] {"parquet", "orc", "avro"}) {
            boolean avro = format.equals("avro"), orc = format.equals("orc");
            RowType.Builder b = RowType.builder();
            b.field("bool", DataTypes.BOOLEAN()).field("tiny", DataTypes.TINYINT()).field("small", DataTypes.SMALLINT())
                .field("int", DataTypes.INT()).field("big", DataTypes.BIGINT()).field("float", DataTypes.FLOAT()).field("double", DataTypes.DOUBLE())
                .field("dec5", DataTypes.DECIMAL(5, 2)).field("dec18", DataTypes.DECIMAL(18, 4)).field("dec38", DataTypes.DECIMAL(38, 10))
                .field("char", DataTypes.CHAR(5)).field("varchar", DataTypes.VARCHAR(5)).field("string", DataTypes.STRING())
                .field("binary", DataTypes.BINARY(3)).field("bytes", DataTypes.BYTES())
                .field("date", DataTypes.DATE()).field("time", DataTypes.TIME(3))
                .field("ts0", DataTypes.TIMESTAMP(0)).field("ts3", DataTypes.TIMESTAMP(3)).field("ts6", DataTypes.TIMESTAMP(6))
                .field("ltz0", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(0)).field("ltz3", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(3)).field("ltz6", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(6));
            if (!avro) b.field("ts9", DataTypes.TIMESTAMP(9)).field("ltz9", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(9));
            b.field("ints", DataTypes.ARRAY(DataTypes.INT()))
                .field("by_name", DataTypes.MAP(DataTypes.STRING().notNull(), DataTypes.TIMESTAMP(3)))
                .field("by_number", DataTypes.MAP(DataTypes.INT().notNull(), DataTypes.STRING()))
                .field("row", DataTypes.ROW(DataTypes.FIELD(100, "x", DataTypes.INT()), DataTypes.FIELD(101, "y", DataTypes.DECIMAL(20, 3)), DataTypes.FIELD(102, "z", DataTypes.ARRAY(DataTypes.TIME(3)))))
                .field("bag", DataTypes.MULTISET(DataTypes.STRING().notNull()));
            RowType type = b.build();
            FileFormat ff = FileFormat.fromIdentifier(format, new Options());
            Path path = new Path(folder + "/all." + format);
            LocalFileIO io = LocalFileIO.create();
            PositionOutputStream out = io.newOutputStream(path, true);
            FormatWriter writer = ff.createWriterFactory(type).create(out, "zstd");
            long[][] moments = {{1732603136123L, 456789}, {-1500, 500000}, {0, 0}};
            for (int i = 0; i < 4; i++) {
                int n = type.getFieldCount();
                GenericRow row = new GenericRow(n);
                if (i < 3) {
                    long ms = moments[i][0]; int ns = (int) moments[i][1];
                    List<Object> v = new ArrayList<>(List.of(i == 0, (byte) (i - 1), (short) (i * -300), i * 100000, i * -10000000000L, i * 1.5f, i * -2.5));
                    v.add(Decimal.fromBigDecimal(new BigDecimal(i == 1 ? "-999.99" : "1.50"), 5, 2));
                    v.add(Decimal.fromBigDecimal(new BigDecimal(i == 1 ? "-99999999999999.9999" : "0.0001"), 18, 4));
                    v.add(Decimal.fromBigDecimal(new BigDecimal(i == 1 ? "-9999999999999999999999999999.9999999999" : "12345678901234567890.5"), 38, 10));
                    v.add(BinaryString.fromString(i == 0 ? "ab   " : "abcde")); v.add(BinaryString.fromString(i == 0 ? "" : "h\u00e9")); v.add(BinaryString.fromString("\ud83d\ude00" + i));
                    v.add(new byte[] {1, 2, (byte) i}); v.add(i == 0 ? new byte[0] : new byte[] {(byte) 0xff, 0});
                    v.add(i == 1 ? -719162 : 19000 + i); v.add(86399999 - i);
                    v.add(Timestamp.fromEpochMillis(Math.floorDiv(ms, 1000L) * 1000, 0)); v.add(Timestamp.fromEpochMillis(ms, 0)); v.add(Timestamp.fromEpochMillis(ms, ns / 1000 * 1000));
                    v.add(Timestamp.fromEpochMillis(Math.floorDiv(ms, 1000L) * 1000, 0)); v.add(Timestamp.fromEpochMillis(ms, 0)); v.add(Timestamp.fromEpochMillis(ms, ns / 1000 * 1000));
                    if (!avro) { v.add(Timestamp.fromEpochMillis(ms, ns)); v.add(Timestamp.fromEpochMillis(ms, ns)); }
                    v.add(new GenericArray(new Object[] {1, null, i}));
                    Map<Object, Object> m = new LinkedHashMap<>(); m.put(BinaryString.fromString("k"), Timestamp.fromEpochMillis(ms)); m.put(BinaryString.fromString("n"), null);
                    v.add(new GenericMap(m));
                    Map<Object, Object> m2 = new LinkedHashMap<>(); m2.put(7 + i, BinaryString.fromString("seven")); m2.put(-1, null);
                    v.add(new GenericMap(m2));
                    v.add(i == 2 ? null : GenericRow.of(i, Decimal.fromBigDecimal(new BigDecimal("-1.125"), 20, 3), new GenericArray(new Object[] {5, null})));
                    Map<Object, Object> m3 = new LinkedHashMap<>(); m3.put(BinaryString.fromString("a"), 2 + i);
                    v.add(new GenericMap(m3));
                    for (int f = 0; f < n; f++) row.setField(f, v.get(f));
                }
                writer.addElement(row);
            }
            writer.close(); out.close();
            if (format.equals("parquet")) {
                RowType far = RowType.builder().field("ts9", DataTypes.TIMESTAMP(9)).build();
                out = io.newOutputStream(new Path(folder + "/far.parquet"), true);
                writer = ff.createWriterFactory(far).create(out, "zstd");
                writer.addElement(GenericRow.of(Timestamp.fromEpochMillis(253402300799000L)));
                writer.close(); out.close();
            }
        }
    }
}
