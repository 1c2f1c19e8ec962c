package headrace.interop;

import java.io.Serializable;

/** More classes than the short form of an object can number. */
final class ManyClasses {
    private ManyClasses() {
    }

    static class C00 implements Serializable {
        public int field0 = 0;
    }

    static class C01 implements Serializable {
        public int field1 = 1;
    }

    static class C02 implements Serializable {
        public int field2 = 2;
    }

    static class C03 implements Serializable {
        public int field3 = 3;
    }

    static class C04 implements Serializable {
        public int field4 = 4;
    }

    static class C05 implements Serializable {
        public int field5 = 5;
    }

    static class C06 implements Serializable {
        public int field6 = 6;
    }

    static class C07 implements Serializable {
        public int field7 = 7;
    }

    static class C08 implements Serializable {
        public int field8 = 8;
    }

    static class C09 implements Serializable {
        public int field9 = 9;
    }

    static class C10 implements Serializable {
        public int field10 = 10;
    }

    static class C11 implements Serializable {
        public int field11 = 11;
    }

    static class C12 implements Serializable {
        public int field12 = 12;
    }

    static class C13 implements Serializable {
        public int field13 = 13;
    }

    static class C14 implements Serializable {
        public int field14 = 14;
    }

    static class C15 implements Serializable {
        public int field15 = 15;
    }

    static class C16 implements Serializable {
        public int field16 = 16;
    }

    static class C17 implements Serializable {
        public int field17 = 17;
    }
}
