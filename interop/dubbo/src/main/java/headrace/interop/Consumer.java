package headrace.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.TreeMap;

/**
 * A Java consumer, told on its standard input what to do, one command a line, and answering each with one line:
 * `checks` calls everything and compares; `whoami N` calls N times and counts who answered and what failed.
 */
public final class Consumer {
    private Consumer() {
    }

    public static void main(String[] args) throws IOException {
        Options options = new Options(args);
        References references = new References(options);
        AllTypes service = references.allTypes();
        Checks checks = new Checks(service, references);
        System.out.println("READY");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.trim().split(" ");
            switch (words[0]) {
                case "checks":
                    System.out.println(checks.run());
                    break;
                case "whoami":
                    System.out.println(whoami(service, Integer.parseInt(words[1])));
                    break;
                default:
                    System.out.println("{\"error\": \"unknown command\"}");
            }
            System.out.flush();
        }
        System.exit(0);
    }

    private static String whoami(AllTypes service, int calls) {
        Map<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < calls; i++) {
            String answer;
            try {
                answer = service.whoami();
            } catch (RuntimeException error) {
                answer = "error: " + error.getMessage();
            }
            counts.merge(answer, 1, Integer::sum);
        }
        StringBuilder json = new StringBuilder("{");
        counts.forEach((name, count) ->
            json.append(json.length() > 1 ? ", " : "").append(Checks.quote(name)).append(": ").append(count));
        return json.append("}").toString();
    }
}
