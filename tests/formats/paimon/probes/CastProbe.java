import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.paimon.casting.*;
import org.apache.paimon.data.*;
import org.apache.paimon.types.*;

/** Prints what Paimon's own casts give: JSON lines {from, to, cases: [[input, output], ...]}. */
public class CastProbe {
    static final Map<String, DataType> TYPES = new LinkedHashMap<>();
    static {
        TYPES.put("BOOLEAN", DataTypes.BOOLEAN());
        TYPES.put("TINYINT", DataTypes.TINYINT());
        TYPES.put("SMALLINT", DataTypes.SMALLINT());
        TYPES.put("INT", DataTypes.INT());
        TYPES.put("BIGINT", DataTypes.BIGINT());
        TYPES.put("FLOAT", DataTypes.FLOAT());
        TYPES.put("DOUBLE", DataTypes.DOUBLE());
        TYPES.put("DECIMAL(5, 2)", DataTypes.DECIMAL(5, 2));
        TYPES.put("DECIMAL(10, 0)", DataTypes.DECIMAL(10, 0));
        TYPES.put("DECIMAL(18, 9)", DataTypes.DECIMAL(18, 9));
        TYPES.put("DECIMAL(38, 10)", DataTypes.DECIMAL(38, 10));
        TYPES.put("CHAR(3)", DataTypes.CHAR(3));
        TYPES.put("CHAR(8)", DataTypes.CHAR(8));
        TYPES.put("VARCHAR(4)", DataTypes.VARCHAR(4));
        TYPES.put("STRING", DataTypes.STRING());
        TYPES.put("BINARY(3)", DataTypes.BINARY(3));
        TYPES.put("BINARY(8)", DataTypes.BINARY(8));
        TYPES.put("VARBINARY(4)", DataTypes.VARBINARY(4));
        TYPES.put("BYTES", DataTypes.BYTES());
        TYPES.put("DATE", DataTypes.DATE());
        TYPES.put("TIME(0)", DataTypes.TIME(0));
        for (int p : new int[] {1, 2, 3, 6}) TYPES.put("TIME(" + p + ")", DataTypes.TIME(p));
        for (int p : new int[] {0, 1, 2, 3, 4, 6, 9}) {
            TYPES.put("TIMESTAMP(" + p + ")", DataTypes.TIMESTAMP(p));
            TYPES.put("TIMESTAMP(" + p + ") WITH LOCAL TIME ZONE", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(p));
        }
    }

    static List<Object> values(DataType t) {
        List<Object> out = new ArrayList<>();
        switch (t.getTypeRoot()) {
            case BOOLEAN: out.addAll(List.of(true, false)); break;
            case TINYINT: for (int v : new int[] {0, 1, -1, 127, -128, 12}) out.add((byte) v); break;
            case SMALLINT: for (int v : new int[] {0, 1, -1, 32767, -32768, 200, 127, -129}) out.add((short) v); break;
            case INTEGER: for (int v : new int[] {0, 1, -1, 2147483647, -2147483648, 70000, 12345, -999, 1000, 16777217}) out.add(v); break;
            case BIGINT: for (long v : new long[] {0, 1, -1, Long.MAX_VALUE, Long.MIN_VALUE, 4294967296L, 12345678901L, 1700000000L, -1700000000L, 1700000000123L, 9007199254740993L, 16777217, 9223371487098961921L, 253402300800L, 33554435}) out.add(v); break;
            case FLOAT: for (float v : new float[] {0f, -0f, 1.5f, -1.5f, 2.5f, 0.1f, 1e10f, -1e10f, 1e20f, 3.4028235e38f, 1.4e-45f, 0.001f, 0.0001f, 9999999f, 1e7f, 123456.789f, 16777216f, 2e-3f, 300.7f, 40000.9f, Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, 3.3e-5f, 8.41e21f, 2.0e-3f, 5.0e-44f, 1.17549435E-38f, 99.995f, 1.005f, 33554432f}) out.add(v); break;
            case DOUBLE: for (double v : new double[] {0, -0.0, 1.5, -1.5, 2.5, 0.1, 1e10, -1e10, 1e20, 1.7976931348623157e308, 4.9e-324, 0.001, 0.0001, 9999999, 1e7, 123456.789, 1e23, 2e23, 2e-3, 300.7, 40000.9, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, 1.005, 99.995, 999.995, 9007199254740993.0, 2.2250738585072014E-308, 1.1e-5, 12345678.125, 2147483648.0, -2147483649.0, 9.3e18, 0.125, 0.135, 1e-7, 1.0E-6}) out.add(v); break;
            case DECIMAL: {
                DecimalType d = (DecimalType) t;
                for (String s : new String[] {"0", "1", "-1", "0.5", "-0.5", "1.5", "2.5", "12.345", "-12.345", "127.9", "128", "-129", "999.99", "99999", "2147483648", "-2147483649", "9999999999", "123456789.123456789", "9223372036854775808", "-9223372036854775809.5", "9999999999999999999999999999.9999999999", "0.0000000001", "0.005", "0.004999999", "1700000000.25", "1E-7"}) {
                    Decimal v = Decimal.fromBigDecimal(new BigDecimal(s), d.getPrecision(), d.getScale());
                    if (v != null) out.add(v);
                }
                break;
            }
            case CHAR: case VARCHAR:
                for (String s : new String[] {"", " ", "a", "abc", "abcd", "abcdefgh", "abcdefghijk", "h\u00e9llo", "\u4f60\u597d\u4e16\u754c\u554a", "\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00",
                    "true", "TRUE", "t", "yes", "Y", "1", "0", "false", "F", "nO", "n", " true", "tru", "on",
                    "12", "+12", "-12", "12.9", "-12.9", "12.", ".5", "-.5", "+", "-", ".", "1e3", "1E3", " 12", "12 ", "0012", "127", "128", "-128", "-129", "32768", "2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1_000", "0x10", "12.x", "12.9.9", "1.5f", "1.5d", "NaN", "Infinity", "-Infinity", "infinity", "0x1p3", "1.", "1e400", "4.9e-325", "\u0661", "1,000", "12.345", "0.005", "999.995", "99999.5", "1e5", "-0", "1.0E-10",
                    "2024-01-02", "2024-1-2", "2024-01-02 03:04:05", "2024-01-02T03:04:05", "2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05.1", "2024-01-02 03:04", "2024-02-30", "2024-13-01", "0001-01-01", "9999-12-31", "10000-01-01", "1969-12-31", "1969-12-31 23:59:59.999999999", "-0001-01-01", "2024", "2024-01", "2024-01-02 ", " 2024-01-02", "2024-01-02 03:04:05.12345678901", "2024-01-02 03:04:05Z", "2024-01-02 03:04:05+08:00", "19000", "2024-01-02 24:00:00", "2024-01-02 3:4:5", "24-01-02", "2024-01-02 03:04:05.", "2024-01-02x", "1582-10-10", "2024-01-02 03:04:05.9995", "2024-01-02 03:04:05.999999999",
                    "03:04:05", "03:04:05.123", "3:4:5", "03:04", "03", "24:00:00", "23:59:59.999999", "03:04:05.1", "03:04:05.1234567890", "03:60:00", "03:04:05Z"}) {
                    BinaryString b = BinaryString.fromString(s);
                    int length = t.getTypeRoot() == DataTypeRoot.CHAR ? ((CharType) t).getLength() : ((VarCharType) t).getLength();
                    if (b.numChars() > length) continue;
                    if (t.getTypeRoot() == DataTypeRoot.CHAR) { if (b.numChars() < length) b = BinaryString.fromString(s + " ".repeat(length - b.numChars())); }
                    out.add(b);
                }
                break;
            case BINARY: case VARBINARY: {
                int length = t.getTypeRoot() == DataTypeRoot.BINARY ? ((BinaryType) t).getLength() : ((VarBinaryType) t).getLength();
                for (byte[] b : new byte[][] {{}, {65}, {65, 66, 67}, {1, 2, 3, 4}, {(byte) 0xff, (byte) 0xfe}, {65, 0, 0}, "abcdefgh".getBytes(StandardCharsets.UTF_8), "abcdefghijk".getBytes(StandardCharsets.UTF_8), {(byte) 0xc3, (byte) 0xa9, 65, 66}, {(byte) 0xe4, (byte) 0xbd}, {(byte)0xed,(byte)0xa0,(byte)0x80,65}, {(byte)0xf0,(byte)0x9f,(byte)0x98,65}})
                    if (t.getTypeRoot() == DataTypeRoot.BINARY ? b.length == length : b.length <= length) out.add(b);
                break;
            }
            case DATE: for (int v : new int[] {0, 1, -1, 19000, -719162, 2932896, -141438, -141427, 2932897, -719163, -719528, 106751, 106752, -106752, -106751}) out.add(v); break;
            case TIME_WITHOUT_TIME_ZONE: for (int v : new int[] {0, 1, 999, 1000, 3723000, 3723004, 86399999, 43200120, 100}) out.add(v); break;
            case TIMESTAMP_WITHOUT_TIME_ZONE: case TIMESTAMP_WITH_LOCAL_TIME_ZONE: {
                int p = DataTypeChecks.getPrecision(t);
                long[][] all = {{0, 0}, {1, 0}, {-1, 0}, {1732603136001L, 1}, {1732603136999L, 999999}, {1732603136000L, 0}, {-1000, 0}, {-1500, 500000}, {-86400000, 0}, {-86400001, 999999}, {-62135596800000L, 0}, {253402300799999L, 999999}, {1732603136100L, 100000}, {1732603136120L, 0}, {-12219292800000L, 0}, {-12220156800001L, 0}, {9223372036854L, 775807}, {9223372036854L, 775808},{-9223372036855L, 224192}, {-9223372036855L, 224191}, {3723004, 567891}};
                for (long[] v : all) {
                    long ms = v[0], ns = v[1];
                    if (p < 3) { long u = (long) Math.pow(10, 3 - p); ms = Math.floorDiv(ms, u) * u; ns = 0; }
                    else if (p <= 3) ns = 0;
                    else { long f = (long) Math.pow(10, 9 - p); ns = ns / f * f; }
                    out.add(Timestamp.fromEpochMillis(ms, (int) ns));
                }
                break;
            }
            default: throw new IllegalStateException(t.toString());
        }
        return out;
    }

    static String json(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') b.append('\\').append(c);
            else if (c < 32 || c > 126) b.append(String.format("\\u%04x", (int) c));
            else b.append(c);
        }
        return b.append('"').toString();
    }

    static String show(DataType t, Object v) {
        if (v == null) return "null";
        switch (t.getTypeRoot()) {
            case CHAR: case VARCHAR: return json("s:" + v);
            case BINARY: case VARBINARY: { StringBuilder b = new StringBuilder("x:"); for (byte x : (byte[]) v) b.append(String.format("%02x", x)); return json(b.toString()); }
            case FLOAT: return json("f:" + String.format("%08x", Float.floatToIntBits((Float) v)));
            case DOUBLE: return json("d:" + String.format("%016x", Double.doubleToLongBits((Double) v)));
            case DECIMAL: return json("n:" + ((Decimal) v).toBigDecimal().toPlainString());
            case TIMESTAMP_WITHOUT_TIME_ZONE: case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return json("t:" + ((Timestamp) v).getMillisecond() + ":" + ((Timestamp) v).getNanoOfMillisecond());
            case BOOLEAN: return json("b:" + v);
            default: return json("i:" + v);
        }
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] args) {
        for (Map.Entry<String, DataType> from : TYPES.entrySet()) {
            for (Map.Entry<String, DataType> to : TYPES.entrySet()) {
                if (from.getKey().equals(to.getKey())) continue;
                                CastExecutor<Object, Object> cast = (CastExecutor<Object, Object>) CastExecutors.resolve(from.getValue(), to.getValue());
                StringBuilder line = new StringBuilder("{\"from\": " + json(from.getKey()) + ", \"to\": " + json(to.getKey()) + ", \"cases\": ");
                if (cast == null) line.append("null}");
                else {
                    line.append('[');
                    String sep = "";
                    for (Object v : values(from.getValue())) {
                        String result;
                        try { Object r = cast.cast(v); result = show(to.getValue(), r); }
                        catch (Throwable e) { result = "\"error\""; }
                        line.append(sep).append('[').append(show(from.getValue(), v)).append(", ").append(result).append(']');
                        sep = ", ";
                    }
                    line.append("]}");
                }
                System.out.println(line);
            }
        }
    }
}
