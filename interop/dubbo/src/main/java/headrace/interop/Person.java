package headrace.interop;

import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A bean with a field of every ordinary type. */
public class Person implements Serializable {
    public boolean active;
    public byte level;
    public short rank;
    public int age;
    public long id;
    public float weight;
    public double height;
    public char initial;
    public Integer boxedInt;
    public Long boxedLong;
    public Double boxedDouble;
    public Boolean boxedBoolean;
    public String name;
    public Date born;
    public BigDecimal balance;
    public BigInteger huge;
    public Colour colour;
    public LocalDate joined;
    public LocalDateTime seen;
    public Instant instant;
    public byte[] photo;
    public int[] numbers;
    public long[] longs;
    public double[] doubles;
    public boolean[] flags;
    public String[] names;
    public Address[] addresses;
    public Address home;
    public Person friend;
    public Object anything;
    public List<String> tags;
    public List<Long> longList;
    public List<Address> places;
    public Set<String> roles;
    public Map<String, Integer> scores;
    public Map<Long, Address> byNumber;
}
