package headrace.interop;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.MonthDay;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.Period;
import java.time.Year;
import java.time.YearMonth;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.EnumSet;
import java.util.GregorianCalendar;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;

/** Every value whose bytes Java and Python must agree on, by name. */
final class Cases {
    private final Map<String, Object> cases = new LinkedHashMap<>();

    private Cases() {
    }

    static Map<String, Object> all() {
        Cases made = new Cases();
        made.numbers();
        made.texts();
        made.times();
        made.collections();
        made.beans();
        made.exceptions();
        return made.cases;
    }

    private void add(String name, Object value) {
        if (cases.put(name, value) != null) {
            throw new IllegalStateException("two cases are called " + name);
        }
    }

    private void numbers() {
        add("null", null);
        add("true", true);
        add("false", false);
        long[] edges = {0, 1, -1, 15, 16, -8, -9, 47, 48, -16, -17, 2047, 2048, -2048, -2049, 262143, 262144, -262144,
            -262145, Integer.MAX_VALUE, Integer.MIN_VALUE};
        for (long edge : edges) {
            add("int " + edge, (int) edge);
            add("long " + edge, edge);
        }
        for (long edge : new long[] {Integer.MAX_VALUE + 1L, Integer.MIN_VALUE - 1L, Long.MAX_VALUE, Long.MIN_VALUE}) {
            add("long " + edge, edge);
        }
        add("short -32768", Short.MIN_VALUE);
        add("byte 127", Byte.MAX_VALUE);
        double[] doubles = {0, 1, -1, 2, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 0.5, 12.25, 0.001, -0.001,
            3.14159, 1e9, 2147483.647, -2147483.648, 2147483.648, 1e300, Double.MIN_VALUE, Double.MAX_VALUE,
            Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY};
        for (double each : doubles) {
            add("double " + each, each);
        }
        add("float 0.1", 0.1f);
        add("float 2.5", 2.5f);
        for (String each : new String[] {"0", "1.10", "-123456789012345678901234567890.123456789", "1E+400", "1E-400"}) {
            add("decimal " + each, new BigDecimal(each));
        }
        for (String each : new String[] {"0", "1", "-1", "2147483648", "9223372036854775808", "-18446744073709551617"}) {
            add("integer " + each, new BigInteger(each));
        }
    }

    private void texts() {
        for (int length : new int[] {0, 1, 31, 32, 1023, 1024, 32767, 32768, 32769, 70000}) {
            add("ascii " + length, "a".repeat(length));
            add("latin " + length, "\u00e9".repeat(length));
            add("han " + length, "\u6f22".repeat(length));
            add("emoji " + length, "\ud83d\ude00".repeat(length));
        }
        // The 32,768th unit is the first half of a pair, so the first chunk must end one unit early.
        add("pair across chunks", "a".repeat(32767) + "\ud83d\ude00" + "b");
        add("lone surrogate", "x\ud83dy");
        add("control", "\u0000\u0001\u007f\u0080\u07ff\u0800\uffff");
        add("char", 'x');
        add("han char", '\u6f22');
        add("char array", "chars".toCharArray());
        for (int length : new int[] {0, 1, 15, 16, 1023, 1024, 4092, 4093, 4094, 8186, 8187, 70000}) {
            byte[] bytes = new byte[length];
            for (int i = 0; i < length; i++) {
                bytes[i] = (byte) (i * 31);
            }
            add("bytes " + length, bytes);
        }
    }

    private void times() {
        add("date epoch", new Date(0));
        add("date minute", new Date(1715000400000L));
        add("date millis", new Date(1715000400123L));
        add("date before epoch", new Date(-1L));
        add("date minute before epoch", new Date(-60000L));
        add("date far", new Date(253402300799999L));
        add("sql timestamp", new Timestamp(1715000400123L));
        add("sql date", new java.sql.Date(1715000400000L));
        GregorianCalendar calendar = new GregorianCalendar();
        calendar.setTimeInMillis(1715000400123L);
        add("calendar", calendar);
        add("local date", LocalDate.of(2024, 2, 29));
        add("local time", LocalTime.of(23, 59, 58, 123456000));
        add("local date time", LocalDateTime.of(2024, 2, 29, 1, 2, 3));
        add("instant", Instant.ofEpochSecond(1715000400L, 123456000));
        add("instant before epoch", Instant.ofEpochSecond(-2L, 500000000));
        add("duration", Duration.ofSeconds(-90061L, 5000));
        add("period", Period.of(1, -2, 3));
        add("year", Year.of(2024));
        add("year month", YearMonth.of(2024, 2));
        add("month day", MonthDay.of(2, 29));
        add("offset time", OffsetTime.of(1, 2, 3, 0, ZoneOffset.ofHours(2)));
        add("offset date time", OffsetDateTime.of(2024, 2, 29, 1, 2, 3, 0, ZoneOffset.ofHoursMinutes(-3, -30)));
        add("zoned date time", ZonedDateTime.ofLocal(
            LocalDateTime.of(2024, 10, 27, 2, 30), ZoneId.of("Europe/Paris"), ZoneOffset.ofHours(1)));
        add("zone id", ZoneId.of("Europe/Paris"));
        add("locale", Locale.US);
        add("locale language", Locale.GERMAN);
        add("uuid", UUID.fromString("01234567-89ab-4def-8123-456789abcdef"));
    }

    private static List<Object> numbered(int size) {
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            list.add(i);
        }
        return list;
    }

    private void collections() {
        for (int size : new int[] {0, 1, 7, 8, 100}) {
            add("list " + size, numbered(size));
        }
        add("linked list", new LinkedList<>(Arrays.asList("a", null, 3L)));
        add("arrays as list", Arrays.asList("a", "b"));
        add("deque", new ArrayDeque<>(Arrays.asList(1, 2)));
        add("singleton list", Collections.singletonList("x"));
        add("empty list", Collections.emptyList());
        add("hash set", new HashSet<>(Arrays.asList("a", "b", 3)));
        add("linked hash set", new LinkedHashSet<>(Arrays.asList("z", "a")));
        add("tree set", new TreeSet<>(Arrays.asList("z", "a")));
        add("enum set", EnumSet.of(Colour.RED, Colour.GREEN));
        Map<String, Object> attachments = new HashMap<>();
        attachments.put("path", "headrace.interop.Greeter");
        attachments.put("timeout", "3000");
        attachments.put("nothing", null);
        add("hash map", attachments);
        add("linked hash map", new LinkedHashMap<>(Map.of("one", 1)));
        add("tree map", new TreeMap<>(Map.of("a", 1L, "b", 2L)));
        Map<Object, Object> keys = new LinkedHashMap<>();
        keys.put(1, "int");
        keys.put(2L, "long");
        keys.put(Colour.RED, "enum");
        keys.put(false, "boolean");
        keys.put(null, "null");
        add("map with many keys", keys);
        add("int array", new int[] {1, -1, 100000});
        add("long array", new long[] {1, Long.MAX_VALUE});
        add("short array", new short[] {1, -1});
        add("float array", new float[] {0.1f, 1});
        add("double array", new double[] {0.1, 1});
        add("boolean array", new boolean[] {true, false});
        add("string array", new String[] {"a", null, "c"});
        add("object array", new Object[] {"a", 1, null});
        add("integer object array", new Integer[] {1, null});
        add("two dimensions", new int[][] {{1, 2}, {}, {3}});
        add("date array", new Date[] {new Date(0)});
        add("bean array", new Address[] {new Address("High Street", 1), null});
        add("empty array", new int[0]);
        List<Object> shared = new ArrayList<>();
        List<Object> inner = new ArrayList<>(Arrays.asList("inner"));
        shared.add(inner);
        shared.add(inner);
        shared.add(shared);
        add("shared and cyclic list", shared);
        Map<String, Object> cyclic = new HashMap<>();
        cyclic.put("self", cyclic);
        add("cyclic map", cyclic);
        BigDecimal one = new BigDecimal("1.5");
        add("references of all kinds", new ArrayList<>(Arrays.asList(
            one, one, Colour.RED, Colour.RED, new Date(0), LocalDate.of(2024, 1, 2), inner, inner,
            new byte[] {1}, new int[] {1}, Locale.US, inner)));
        List<Object> types = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            types.add(new LinkedList<>(Arrays.asList(i)));
            types.add(new TreeMap<>(Map.of("k", i)));
            types.add(new long[] {i});
        }
        add("type references", types);
    }

    private void beans() {
        add("enum", Colour.GREEN);
        add("enum with body", Colour.BLUE);
        add("empty person", new Person());
        Person person = person();
        add("person", person);
        Employee employee = new Employee();
        employee.name = "Eve";
        employee.title = "chief";
        employee.manager = employee;
        employee.friend = person;
        add("employee", employee);
        List<Object> classes = new ArrayList<>();
        for (int round = 0; round < 2; round++) {
            classes.addAll(Arrays.asList(new ManyClasses.C00(), new ManyClasses.C01(), new ManyClasses.C02(),
                new ManyClasses.C03(), new ManyClasses.C04(), new ManyClasses.C05(), new ManyClasses.C06(),
                new ManyClasses.C07(), new ManyClasses.C08(), new ManyClasses.C09(), new ManyClasses.C10(),
                new ManyClasses.C11(), new ManyClasses.C12(), new ManyClasses.C13(), new ManyClasses.C14(),
                new ManyClasses.C15(), new ManyClasses.C16(), new ManyClasses.C17()));
        }
        add("many classes", classes);
    }

    static Person person() {
        Person person = new Person();
        person.active = true;
        person.level = -3;
        person.rank = 300;
        person.age = 42;
        person.id = 7;
        person.weight = 70.5f;
        person.height = 1.85;
        person.initial = 'J';
        person.boxedInt = 5;
        person.boxedLong = 6L;
        person.boxedDouble = 7.0;
        person.boxedBoolean = true;
        person.name = "J\u00f6rg \ud83d\ude00";
        person.born = new Date(1715000400123L);
        person.balance = new BigDecimal("12.30");
        person.huge = new BigInteger("9223372036854775808");
        person.colour = Colour.RED;
        person.joined = LocalDate.of(2024, 2, 29);
        person.seen = LocalDateTime.of(2024, 2, 29, 1, 2, 3);
        person.instant = Instant.ofEpochSecond(1715000400L);
        person.photo = new byte[] {1, 2, 3};
        person.numbers = new int[] {1, 2};
        person.longs = new long[] {3, 4};
        person.doubles = new double[] {0.5};
        person.flags = new boolean[] {true};
        person.names = new String[] {"a", "b"};
        person.addresses = new Address[] {new Address("Low Street", 2)};
        person.home = new Address("High Street", 1);
        person.friend = person;
        person.anything = new ArrayList<>(Arrays.asList(1, "two"));
        person.tags = new ArrayList<>(Arrays.asList("x", "y"));
        person.longList = new ArrayList<>(Arrays.asList(1L, 2L));
        person.places = new ArrayList<>(Arrays.asList(person.home, person.home));
        person.roles = new HashSet<>(Arrays.asList("admin"));
        person.scores = new HashMap<>(Map.of("chess", 3));
        person.byNumber = new HashMap<>(Map.of(1L, person.home));
        return person;
    }

    private void exceptions() {
        StackTraceElement[] trace = {new StackTraceElement("headrace.interop.Shop", "order", "Shop.java", 12)};
        IllegalStateException cause = new IllegalStateException("empty");
        cause.setStackTrace(trace);
        OrderException failure = new OrderException("no such order", 7, cause);
        failure.setStackTrace(trace);
        add("exception", cause);
        add("own exception", failure);
    }
}
