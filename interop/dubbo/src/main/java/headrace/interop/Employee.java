package headrace.interop;

/** Inherits all of Person's fields. */
public class Employee extends Person {
    public String title;
    public Person manager;
}
