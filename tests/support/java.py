"""Options of the Java processes that tests start."""

SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-XX:MetaspaceSize=256m",
)
"""For processes that live for seconds: they spend most of their time on loading and compiling what runs once, and an
eighth of it on verifying classes of released libraries. Loading classes would start a full collection four to six times
before there are 256 MB of them; memory is not reserved for them."""
