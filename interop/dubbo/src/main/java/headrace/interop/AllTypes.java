package headrace.interop;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The service under test: every ordinary type as argument and result, and every way a call can end. */
public interface AllTypes {
    boolean echoBoolean(boolean value);

    byte echoByte(byte value);

    short echoShort(short value);

    int echoInt(int value);

    long echoLong(long value);

    float echoFloat(float value);

    double echoDouble(double value);

    char echoChar(char value);

    Integer echoInteger(Integer value);

    Long echoBoxedLong(Long value);

    String echoString(String value);

    byte[] echoBytes(byte[] value);

    int[] echoInts(int[] value);

    String[] echoStrings(String[] value);

    Date echoDate(Date value);

    LocalDate echoLocalDate(LocalDate value);

    LocalDateTime echoLocalDateTime(LocalDateTime value);

    Instant echoInstant(Instant value);

    BigDecimal echoDecimal(BigDecimal value);

    BigInteger echoBigInteger(BigInteger value);

    Colour echoColour(Colour value);

    Person echoPerson(Person value);

    List<Person> echoPeople(List<Person> value);

    List<Long> echoLongs(List<Long> value);

    Set<String> echoSet(Set<String> value);

    Map<String, Person> echoMap(Map<String, Person> value);

    Object echoObject(Object value);

    String join(String text, int number, long big, double ratio, boolean flag, List<String> words);

    String over(int number);

    String over(String text);

    void nothing();

    /** Throws an exception of the service's own. */
    void failOwn(String message, int code) throws OrderException;

    /** Throws a checked exception that is declared. */
    void failChecked(String message) throws IOException;

    /** Throws an unchecked exception of the JDK. */
    void failRuntime(String message);

    /** What the caller attached to this call. */
    Map<String, String> attachments();

    /** Attaches `reply` to the answer. */
    String attach(String reply);

    /** Called one-way; `fired` tells how often it arrived. */
    void fire(String id);

    int fired(String id);

    /** Answers after `millis`. */
    String slow(int millis);

    /** The provider's name, to tell several apart. */
    String whoami();
}
