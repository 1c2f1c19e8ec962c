import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** A client's settings, with those of the file that CLIENT_PROPERTIES names: how a secured broker is reached. */
final class Settings {
    private Settings() {}

    static Map<String, Object> with(Map<String, ?> own) {
        Map<String, Object> all = new HashMap<>(own);
        String file = System.getenv("CLIENT_PROPERTIES");
        if (file == null) return all;
        var given = new Properties();
        try (var reader = Files.newBufferedReader(Path.of(file))) {
            given.load(reader);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
        given.forEach((name, value) -> all.put((String) name, value));
        return all;
    }
}
