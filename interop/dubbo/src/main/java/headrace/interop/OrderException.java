package headrace.interop;

/** An exception of the service's own, with a field. */
public class OrderException extends RuntimeException {
    public int errorCode;

    public OrderException() {
    }

    public OrderException(String message, int errorCode, Throwable cause) {
        super(message, cause);
        this.errorCode = errorCode;
    }
}
