package headrace.interop;

import java.io.Serializable;

public class Address implements Serializable {
    public String street;
    public int houseNumber;

    public Address() {
    }

    public Address(String street, int houseNumber) {
        this.street = street;
        this.houseNumber = houseNumber;
    }
}
