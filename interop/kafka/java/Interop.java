import java.util.Arrays;

/**
 * Apache Kafka's own Java clients against any broker: records in and out as JSON lines, offset look-ups, admin calls, groups, transactions.
 * Usage: Interop write|read|offsets|admin|group|share|storm|transactions|isolated|chain|steady BOOTSTRAP …; a failed check ends with one sentence and code 1.
 */
public final class Interop {
    private Interop() {}

    public static void main(String[] args) throws Exception {
        try {
            String[] rest = Arrays.copyOfRange(args, 2, args.length);
            switch (args[0]) {
                case "write" -> Records.write(args[1], rest[0], rest[1]);
                case "read" -> Records.read(args[1], rest);
                case "offsets" -> Offsets.print(args[1], rest[0], rest[1]);
                case "admin" -> AdminChecks.run(args[1], rest[0]);
                case "group" -> Groups.consume(args[1], rest[0], rest[1], rest[2], Integer.parseInt(rest[3]));
                case "share" -> Share.consume(args[1], rest[0], rest[1], rest[2], Integer.parseInt(rest[3]));
                case "steady" -> Steady.run(args[1], rest[0], Integer.parseInt(rest[1]));
                case "transactions" -> Transactions.write(args[1], rest[0], Integer.parseInt(rest[1]));
                case "isolated" -> Transactions.read(args[1], rest[0], rest[1]);
                case "chain" -> Transactions.chain(args[1], rest[0], rest[1], Long.parseLong(rest[2]));
                case "storm" -> Storm.run(args[1], rest[0], rest[1], rest[2]);
                default -> throw new IllegalArgumentException("no such command: " + args[0]);
            }
        } catch (CheckFailed failed) {
            System.err.println(failed.getMessage());
            System.exit(1);
        }
    }

    static final class CheckFailed extends RuntimeException {
        private static final long serialVersionUID = 1;

        CheckFailed(String sentence) {
            super(sentence);
        }
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) throw new CheckFailed(otherwise);
    }
}
