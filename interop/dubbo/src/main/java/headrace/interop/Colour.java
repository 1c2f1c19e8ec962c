package headrace.interop;

/** An enum; BLUE has a body of its own and therefore a class of its own. */
public enum Colour {
    RED, GREEN, BLUE {
        @Override
        public String hex() {
            return "00f";
        }
    };

    public String hex() {
        return "?";
    }
}
