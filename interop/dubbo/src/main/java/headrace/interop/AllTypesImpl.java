package headrace.interop;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.dubbo.rpc.RpcContext;

final class AllTypesImpl implements AllTypes {
    private final String name;
    private final Map<String, Integer> fired = new ConcurrentHashMap<>();

    AllTypesImpl(String name) {
        this.name = name;
    }

    @Override
    public boolean echoBoolean(boolean value) {
        return value;
    }

    @Override
    public byte echoByte(byte value) {
        return value;
    }

    @Override
    public short echoShort(short value) {
        return value;
    }

    @Override
    public int echoInt(int value) {
        return value;
    }

    @Override
    public long echoLong(long value) {
        return value;
    }

    @Override
    public float echoFloat(float value) {
        return value;
    }

    @Override
    public double echoDouble(double value) {
        return value;
    }

    @Override
    public char echoChar(char value) {
        return value;
    }

    @Override
    public Integer echoInteger(Integer value) {
        return value;
    }

    @Override
    public Long echoBoxedLong(Long value) {
        return value;
    }

    @Override
    public String echoString(String value) {
        return value;
    }

    @Override
    public byte[] echoBytes(byte[] value) {
        return value;
    }

    @Override
    public int[] echoInts(int[] value) {
        return value;
    }

    @Override
    public String[] echoStrings(String[] value) {
        return value;
    }

    @Override
    public Date echoDate(Date value) {
        return value;
    }

    @Override
    public LocalDate echoLocalDate(LocalDate value) {
        return value;
    }

    @Override
    public LocalDateTime echoLocalDateTime(LocalDateTime value) {
        return value;
    }

    @Override
    public Instant echoInstant(Instant value) {
        return value;
    }

    @Override
    public BigDecimal echoDecimal(BigDecimal value) {
        return value;
    }

    @Override
    public BigInteger echoBigInteger(BigInteger value) {
        return value;
    }

    @Override
    public Colour echoColour(Colour value) {
        return value;
    }

    @Override
    public Person echoPerson(Person value) {
        return value;
    }

    @Override
    public List<Person> echoPeople(List<Person> value) {
        return value;
    }

    @Override
    public List<Long> echoLongs(List<Long> value) {
        long sum = 0;
        for (Long each : value) {
            sum += each; // each must be a Long indeed
        }
        return sum >= 0 ? value : null;
    }

    @Override
    public Set<String> echoSet(Set<String> value) {
        return value;
    }

    @Override
    public Map<String, Person> echoMap(Map<String, Person> value) {
        return value;
    }

    @Override
    public Object echoObject(Object value) {
        return value;
    }

    @Override
    public String join(String text, int number, long big, double ratio, boolean flag, List<String> words) {
        return text + "|" + number + "|" + big + "|" + ratio + "|" + flag + "|" + String.join(",", words);
    }

    @Override
    public String over(int number) {
        return "int " + number;
    }

    @Override
    public String over(String text) {
        return "string " + text;
    }

    @Override
    public void nothing() {
    }

    @Override
    public void failOwn(String message, int code) {
        throw new OrderException(message, code, new IllegalStateException("the cause"));
    }

    @Override
    public void failChecked(String message) throws IOException {
        throw new IOException(message);
    }

    @Override
    public void failRuntime(String message) {
        throw new IllegalArgumentException(message);
    }

    @Override
    public Map<String, String> attachments() {
        return new HashMap<>(RpcContext.getContext().getAttachments());
    }

    @Override
    public String attach(String reply) {
        RpcContext.getServerContext().setAttachment("reply", reply);
        return reply;
    }

    @Override
    public void fire(String id) {
        fired.merge(id, 1, Integer::sum);
    }

    @Override
    public int fired(String id) {
        return fired.getOrDefault(id, 0);
    }

    @Override
    public String slow(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return "slept " + millis;
    }

    @Override
    public String whoami() {
        return name;
    }
}
