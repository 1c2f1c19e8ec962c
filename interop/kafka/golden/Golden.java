import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Every version of every message that brokers take from clients, or from each other: a line with name, version, the bytes in hex
 * and what they say as JSON. Each comes as it is made, with a value in every field that the version has, and with null where it may be.
 */
public class Golden {
    private static final Random DICE = new Random(44);
    private static final Set<ApiMessageType> AMONG_BROKERS =
        Set.of(ApiMessageType.ALTER_PARTITION, ApiMessageType.ALLOCATE_PRODUCER_IDS);

    public static void main(String[] arguments) throws Exception {
        for (ApiMessageType type : ApiMessageType.values()) {
            boolean spoken = type.listeners().contains(ApiMessageType.ListenerType.BROKER) || AMONG_BROKERS.contains(type);
            if (!spoken || type.lowestSupportedVersion() > type.highestSupportedVersion(false)) continue;
            for (short version = type.lowestSupportedVersion(); version <= type.highestSupportedVersion(false); version++) {
                write(type.newRequest(), version);
                write(type.newResponse(), version);
            }
        }
        for (short version = 0; version <= ConsumerProtocolSubscription.HIGHEST_SUPPORTED_VERSION; version++) {
            write(new ConsumerProtocolSubscription(), version);
            write(new ConsumerProtocolAssignment(), version);
        }
    }

    private static void write(Message message, short version) throws Exception {
        print(message, version);
        fill(message, version, false);
        print(message, version);
        fill(message, version, true);
        print(message, version);
    }

    private static void print(Message message, short version) throws Exception {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        Object json = converter.getMethod("write", message.getClass(), short.class).invoke(null, message, version);
        String name = message.getClass().getSimpleName().replaceFirst("Data$", "");
        System.out.println(name + " " + version + " " + HexFormat.of().formatHex(buffer.array()) + " " + json);
    }

    private static void fill(Object message, short version, boolean nulls) throws Exception {
        Schema[] schemas = (Schema[]) message.getClass().getField("SCHEMAS").get(null);
        for (Map.Entry<String, Type> field : fields(schemas[version]).entrySet()) {
            Field java = message.getClass().getDeclaredField(field.getKey());
            for (Method method : message.getClass().getMethods()) {
                if (method.getName().equalsIgnoreCase("set" + field.getKey()) && method.getParameterCount() == 1) {
                    Type type = field.getValue();
                    Object value = nulls && type.isNullable() ? null : value(java, version, nulls);
                    method.invoke(message, value);
                }
            }
        }
    }

    /** The fields of a version, tagged ones included, with the names of Java's fields. */
    private static Map<String, Type> fields(Schema schema) {
        Map<String, Type> found = new LinkedHashMap<>();
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields tagged) {
                tagged.fields().values().forEach(each -> found.put(camel(each.name), each.type));
            } else {
                found.put(camel(field.def.name), field.def.type);
            }
        }
        return found;
    }

    private static String camel(String snake) {
        StringBuilder out = new StringBuilder();
        for (String word : snake.split("_")) {
            if (word.isEmpty()) continue;
            out.append(out.length() == 0 ? word : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        }
        return out.toString();
    }

    private static Object value(Field field, short version, boolean nulls) throws Exception {
        Class<?> type = field.getType();
        if (Collection.class.isAssignableFrom(type)) {
            boolean list = type == List.class;
            Class<?> element = list
                ? (Class<?>) argument(field.getGenericType())
                : (Class<?>) argument(type.getGenericSuperclass());
            @SuppressWarnings("unchecked")
            Collection<Object> items = list
                ? new ArrayList<>()
                : (Collection<Object>) type.getConstructor().newInstance();
            for (int i = 0; i < 2; i++) items.add(single(element, version, nulls));
            return items;
        }
        return single(type, version, nulls);
    }

    private static java.lang.reflect.Type argument(java.lang.reflect.Type generic) {
        java.lang.reflect.Type found = ((ParameterizedType) generic).getActualTypeArguments()[0];
        return found instanceof ParameterizedType inner ? inner.getRawType() : found;
    }

    private static Object single(Class<?> type, short version, boolean nulls) throws Exception {
        if (type == boolean.class || type == Boolean.class) return true;
        if (type == byte.class || type == Byte.class) return (byte) (1 + DICE.nextInt(100));
        if (type == short.class || type == Short.class) return (short) (1 + DICE.nextInt(1000));
        if (type == int.class || type == Integer.class) return 1 + DICE.nextInt(1000);
        if (type == long.class || type == Long.class) return (long) DICE.nextInt(1000) << 32;
        if (type == double.class) return DICE.nextInt(1000) / 8.0;
        if (type == String.class) return "é漢" + DICE.nextInt(1000);
        if (type == Uuid.class) return new Uuid(DICE.nextInt(1000), 1 + DICE.nextInt(1000));
        if (type == byte[].class) return bytes();
        if (type == ByteBuffer.class) return ByteBuffer.wrap(bytes());
        if (BaseRecords.class.isAssignableFrom(type)) {
            return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes()));
        }
        Object struct = type.getConstructor().newInstance();
        fill(struct, version, nulls);
        return struct;
    }

    private static byte[] bytes() {
        byte[] found = new byte[1 + DICE.nextInt(20)];
        DICE.nextBytes(found);
        return found;
    }
}
