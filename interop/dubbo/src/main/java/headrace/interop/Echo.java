package headrace.interop;

/** The service under load. */
public interface Echo {
    String echo(String text);
}
