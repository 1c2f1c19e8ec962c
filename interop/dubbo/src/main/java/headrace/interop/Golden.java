package headrace.interop;

import com.alibaba.com.caucho.hessian.io.Hessian2Input;
import com.alibaba.com.caucho.hessian.io.Hessian2Output;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import java.util.zip.Deflater;

/**
 * The Hessian 2 bytes Java writes for each case (`write FILE`), and whether it reads the bytes Python wrote for them
 * as the same values (`check FILE`, lines of name, tab, hex).
 */
public final class Golden {
    private static final int COMPRESS_FROM = 400;

    private Golden() {
    }

    public static void main(String[] args) throws IOException {
        if (args.length == 2 && args[0].equals("write")) {
            write(Path.of(args[1]));
        } else if (args.length == 2 && args[0].equals("check")) {
            System.exit(check(Path.of(args[1])) ? 0 : 1);
        } else {
            System.err.println("usage: Golden write FILE | check FILE");
            System.exit(2);
        }
    }

    private static void write(Path file) throws IOException {
        StringBuilder json = new StringBuilder("{\n");
        String separator = "";
        for (Map.Entry<String, Object> each : Cases.all().entrySet()) {
            byte[] bytes = serialize(each.getValue());
            String text = bytes.length < COMPRESS_FROM
                ? HexFormat.of().formatHex(bytes)
                : "zlib:" + Base64.getEncoder().encodeToString(deflate(bytes));
            json.append(separator).append("  \"").append(each.getKey()).append("\": \"").append(text).append('"');
            separator = ",\n";
        }
        Files.writeString(file, json.append("\n}\n").toString());
    }

    private static boolean check(Path file) throws IOException {
        Map<String, Object> cases = Cases.all();
        boolean right = true;
        int count = 0;
        for (String line : Files.readAllLines(file, StandardCharsets.UTF_8)) {
            String name = line.substring(0, line.indexOf('\t'));
            byte[] bytes = HexFormat.of().parseHex(line.substring(line.indexOf('\t') + 1));
            if (!cases.containsKey(name)) {
                System.out.println(name + ": no such case");
                right = false;
                continue;
            }
            if (!readable(cases.get(name))) {
                System.out.println(name + ": Java cannot read its own");
                continue;
            }
            String wrong = compare(cases.get(name), bytes);
            if (wrong != null) {
                System.out.println(name + ": " + wrong);
                right = false;
            }
            count++;
        }
        System.out.println(count + " values read");
        return right;
    }

    /** Reads as Dubbo reads an argument of that class, and says what is different. */
    private static String compare(Object expected, byte[] bytes) {
        try {
            Object read = deserialize(bytes, expected);
            if (expected instanceof Number || expected instanceof CharSequence) {
                return expected.equals(read) ? null : "expected " + expected + ", read " + read;
            }
            if (expected instanceof Throwable) {
                return describe(expected).equals(describe(read)) ? null : "reads as something else: " + describe(read);
            }
            // Written again by Java, it must be what Java makes of its own bytes, references and all.
            byte[] own = serialize(deserialize(serialize(expected), expected));
            return Arrays.equals(serialize(read), own) ? null : "reads as something else: " + read;
        } catch (IOException | RuntimeException error) {
            return "cannot be read: " + error;
        }
    }

    /** Whether Java can read what it wrote itself; hessian-lite cannot make a java.util.UUID, for one. */
    private static boolean readable(Object value) throws IOException {
        byte[] bytes = serialize(value);
        try {
            deserialize(bytes, value);
            return true;
        } catch (IOException | RuntimeException error) {
            return false;
        }
    }

    private static String describe(Object error) {
        if (!(error instanceof Throwable)) {
            return String.valueOf(error);
        }
        Throwable throwable = (Throwable) error;
        String code = throwable instanceof OrderException ? " code " + ((OrderException) throwable).errorCode : "";
        return throwable + code + " at " + Arrays.toString(throwable.getStackTrace())
            + " caused by " + describe(throwable.getCause());
    }

    private static byte[] serialize(Object value) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Hessian2Output output = new Hessian2Output(bytes);
        output.writeObject(value);
        output.flush();
        return bytes.toByteArray();
    }

    private static Object deserialize(byte[] bytes, Object like) throws IOException {
        Hessian2Input input = new Hessian2Input(new ByteArrayInputStream(bytes));
        return like == null ? input.readObject() : input.readObject(like.getClass());
    }

    private static byte[] deflate(byte[] bytes) {
        Deflater deflater = new Deflater(9);
        deflater.setInput(bytes);
        deflater.finish();
        byte[] buffer = new byte[bytes.length + 64];
        int length = deflater.deflate(buffer);
        deflater.end();
        return Arrays.copyOf(buffer, length);
    }
}
