package headrace.interop;

import com.alibaba.com.caucho.hessian.io.Hessian2Output;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.apache.dubbo.rpc.RpcContext;
import org.apache.dubbo.rpc.RpcException;
import org.apache.dubbo.rpc.service.EchoService;
import org.apache.dubbo.rpc.service.GenericService;

/** Calls every method in every way; the outcome is a JSON object, check by check: `"ok"` or what was wrong. */
final class Checks {
    private final AllTypes service;
    private final References references;
    private final Map<String, String> outcome = new LinkedHashMap<>();

    Checks(AllTypes service, References references) {
        this.service = service;
        this.references = references;
    }

    String run() {
        outcome.clear();
        numbers();
        texts();
        objects();
        collections();
        failures();
        context();
        generic();
        StringBuilder json = new StringBuilder("{");
        outcome.forEach((name, text) ->
            json.append(json.length() > 1 ? ", " : "").append(quote(name)).append(": ").append(quote(text)));
        return json.append("}").toString();
    }

    private void check(String name, Callable<Object> call, Object expected) {
        try {
            Object actual = call.call();
            boolean same = Arrays.equals(bytes(actual), bytes(expected));
            outcome.put(name, same ? "ok" : "expected " + text(expected) + ", got " + text(actual));
        } catch (Exception error) {
            outcome.put(name, "threw " + error);
        }
    }

    /** The way to compare beans, arrays and cycles alike: by what they are on the wire. */
    private static byte[] bytes(Object value) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Hessian2Output output = new Hessian2Output(bytes);
        output.writeObject(value);
        output.flush();
        return bytes.toByteArray();
    }

    private static String text(Object value) {
        return value == null ? "null" : value.getClass().getName() + " " + value;
    }

    private void numbers() {
        check("boolean", () -> service.echoBoolean(true), true);
        check("byte", () -> service.echoByte((byte) -128), (byte) -128);
        check("short", () -> service.echoShort((short) -32768), (short) -32768);
        for (int value : new int[] {0, -16, 48, 2048, -262145, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            check("int " + value, () -> service.echoInt(value), value);
        }
        for (long value : new long[] {0, 16, 2048, 262144, Integer.MAX_VALUE, Long.MAX_VALUE, Long.MIN_VALUE}) {
            check("long " + value, () -> service.echoLong(value), value);
        }
        check("float", () -> service.echoFloat(0.1f), 0.1f);
        for (double value : new double[] {0, 1, -3.5, 1e300, Double.NaN}) {
            check("double " + value, () -> service.echoDouble(value), value);
        }
        check("Integer", () -> service.echoInteger(7), 7);
        check("Integer null", () -> service.echoInteger(null), null);
        check("Long", () -> service.echoBoxedLong(7L), 7L);
        check("BigDecimal", () -> service.echoDecimal(new BigDecimal("-12.3400")), new BigDecimal("-12.3400"));
        BigInteger huge = new BigInteger("123456789012345678901234567890");
        check("BigInteger", () -> service.echoBigInteger(huge).equals(huge), true);
    }

    private void texts() {
        check("char", () -> service.echoChar('\u6f22'), '\u6f22');
        check("string null", () -> service.echoString(null), null);
        for (String value : new String[] {"", "plain", "J\u00f6rg \u6f22\u5b57 \ud83d\ude00", "\ud83d\ude00".repeat(40_000)}) {
            check("string of " + value.length(), () -> service.echoString(value), value);
        }
        byte[] bytes = new byte[100_000];
        Arrays.fill(bytes, (byte) 200);
        check("bytes", () -> service.echoBytes(bytes), bytes);
    }

    private void objects() {
        Date date = new Date(1715000400123L);
        check("Date", () -> service.echoDate(date), date);
        check("LocalDate", () -> service.echoLocalDate(LocalDate.of(2024, 2, 29)), LocalDate.of(2024, 2, 29));
        LocalDateTime time = LocalDateTime.of(2024, 2, 29, 1, 2, 3, 4000);
        check("LocalDateTime", () -> service.echoLocalDateTime(time), time);
        Instant instant = Instant.ofEpochSecond(1715000400L, 5000);
        check("Instant", () -> service.echoInstant(instant), instant);
        check("enum", () -> service.echoColour(Colour.BLUE), Colour.BLUE);
        check("bean", () -> service.echoPerson(Cases.person()), Cases.person());
        check("empty bean", () -> service.echoPerson(new Person()), new Person());
        check("cycle", () -> {
            Person person = service.echoPerson(Cases.person());
            return person.friend == person && person.places.get(0) == person.home;
        }, true);
    }

    private void collections() {
        check("int[]", () -> service.echoInts(new int[] {1, 2}), new int[] {1, 2});
        check("String[]", () -> service.echoStrings(new String[] {"a", null}), new String[] {"a", null});
        check("List<Person>", () -> service.echoPeople(list(Cases.person())), list(Cases.person()));
        check("List<Long>", () -> {
            long sum = 0;
            for (Long each : service.echoLongs(list(1L, 2L, 1L << 40))) {
                sum += each;
            }
            return sum;
        }, 3 + (1L << 40));
        check("Set", () -> service.echoSet(new HashSet<>(list("a"))), new HashSet<>(list("a")));
        Map<String, Person> map = new HashMap<>();
        map.put("ann", Cases.person());
        map.put("none", null);
        check("Map", () -> service.echoMap(map), map);
        check("Object", () -> service.echoObject(list("a", 1, Colour.RED)), list("a", 1, Colour.RED));
        check("many arguments", () -> service.join("t", 1, 1L << 40, 0.5, true, list("x", "y")),
            "t|1|1099511627776|0.5|true|x,y");
        check("overloaded int", () -> service.over(5), "int 5");
        check("overloaded string", () -> service.over("five"), "string five");
        check("nothing", () -> {
            service.nothing();
            return null;
        }, null);
    }

    private void failures() {
        check("own exception", () -> {
            try {
                service.failOwn("no such order", 7);
                return "nothing was thrown";
            } catch (OrderException error) {
                boolean traced = error.getStackTrace().length > 0;
                return error.getMessage() + " " + error.errorCode + " " + error.getCause().getMessage() + " " + traced;
            }
        }, "no such order 7 the cause true");
        check("checked exception", () -> {
            try {
                service.failChecked("broken");
                return "nothing was thrown";
            } catch (IOException error) {
                return error.getMessage();
            }
        }, "broken");
        check("runtime exception", () -> {
            try {
                service.failRuntime("wrong");
                return "nothing was thrown";
            } catch (IllegalArgumentException error) {
                return error.getMessage();
            }
        }, "wrong");
        check("timeout", () -> {
            try {
                return service.slow(3000);
            } catch (RpcException error) {
                return error.isTimeout();
            }
        }, true);
    }

    private void context() {
        check("attachments", () -> {
            RpcContext.getContext().setAttachment("trace.id", "t-1");
            return service.attachments().get("trace.id");
        }, "t-1");
        check("reply attachments", () -> {
            service.attach("back");
            return RpcContext.getServerContext().getAttachment("reply");
        }, "back");
        check("one-way", () -> {
            String id = UUID.randomUUID().toString();
            service.fire(id);
            long deadline = System.nanoTime() + 5_000_000_000L;
            while (service.fired(id) == 0 && System.nanoTime() < deadline) {
                Thread.sleep(10);
            }
            return service.fired(id);
        }, 1);
        check("$echo", () -> ((EchoService) service).$echo("ping"), "ping");
    }

    private void generic() {
        GenericService anything = references.generic();
        check("generic string", () -> anything.$invoke(
            "echoString", new String[] {"java.lang.String"}, new Object[] {"g"}), "g");
        check("generic arguments", () -> anything.$invoke("join",
            new String[] {"java.lang.String", "int", "long", "double", "boolean", "java.util.List"},
            new Object[] {"t", 1, 2L, 0.5, false, list("x")}), "t|1|2|0.5|false|x");
        check("generic bean", () -> {
            Map<String, Object> home = new HashMap<>(Map.of("street", "High Street", "houseNumber", 3));
            Map<String, Object> person = new HashMap<>(Map.of("name", "Ann", "age", 9, "home", home, "colour", "RED"));
            Map<?, ?> answer = (Map<?, ?>) anything.$invoke(
                "echoPerson", new String[] {Person.class.getName()}, new Object[] {person});
            Map<?, ?> answeredHome = (Map<?, ?>) answer.get("home");
            return answer.get("name") + " " + answer.get("age") + " " + answer.get("colour") + " "
                + answeredHome.get("houseNumber") + " " + answer.get("class");
        }, "Ann 9 RED 3 headrace.interop.Person");
        check("generic exception", () -> {
            try {
                return anything.$invoke("failRuntime", new String[] {"java.lang.String"}, new Object[] {"wrong"});
            } catch (RuntimeException error) {
                return error.getMessage().contains("wrong");
            }
        }, true);
    }

    @SafeVarargs
    private static <T> List<T> list(T... items) {
        return new ArrayList<>(Arrays.asList(items));
    }

    static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                quoted.append('\\').append(each);
            } else if (each < 0x20 || each > 0x7e) {
                quoted.append(String.format("\\u%04x", (int) each));
            } else {
                quoted.append(each);
            }
        }
        return quoted.append('"').toString();
    }
}
