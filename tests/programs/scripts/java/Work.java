import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.Deflater;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import java.util.zip.Inflater;

/** Threads whose work reaches malloc: buffers outside the heap, zlib, classes compiled as they run. */
public final class Work {
    private static String hash(byte[] bytes) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes), 0, 8);
    }

    private static byte[] text(Random random, int size) {
        byte[] bytes = new byte[size];
        for (int i = 0; i < size; i++) {
            bytes[i] = (byte) (random.nextInt(5) > 0 ? 'a' + random.nextInt(8) : random.nextInt(256));
        }
        return bytes;
    }

    /** Direct buffers that come and go: each is a block of malloc. */
    private static String buffers(int seed) throws Exception {
        Random random = new Random(seed);
        Map<Integer, ByteBuffer> kept = new HashMap<>();
        long sum = 0;
        for (int n = 0; n < 3000; n++) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(1 + random.nextInt(20_000));
            while (buffer.remaining() >= 4) {
                buffer.putInt(n ^ buffer.position());
            }
            ByteBuffer old = kept.put(random.nextInt(100), buffer);
            if (old != null) {
                old.flip();
                while (old.remaining() >= 4) {
                    sum = sum * 31 + old.getInt();
                }
            }
        }
        return Long.toHexString(sum);
    }

    /** Streams of zlib with their own windows, two levels deep. */
    private static String packed(int seed) throws Exception {
        Random random = new Random(seed);
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (int n = 0; n < 60; n++) {
            byte[] bytes = text(random, 1000 + random.nextInt(60_000));
            Deflater deflater = new Deflater(1 + n % 9);
            deflater.setInput(bytes);
            deflater.finish();
            byte[] small = new byte[bytes.length + 1000];
            int length = deflater.deflate(small);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(small, 0, length);
            byte[] back = new byte[bytes.length];
            inflater.inflate(back);
            inflater.end();
            if (!java.util.Arrays.equals(bytes, back)) {
                throw new IllegalStateException("zlib gave other bytes back");
            }
            try (GZIPOutputStream zip = new GZIPOutputStream(all)) {
                zip.write(small, 0, length);
            }
        }
        byte[] first = new GZIPInputStream(new ByteArrayInputStream(all.toByteArray())).readNBytes(1 << 20);
        return hash(all.toByteArray()) + " " + hash(first);
    }

    private static String objects(int seed) throws Exception {
        Random random = new Random(seed);
        Map<Integer, List<String>> kept = new HashMap<>();
        for (int n = 0; n < 150_000; n++) {
            kept.computeIfAbsent(random.nextInt(20_000), k -> new ArrayList<>()).add("item " + n);
            if (n % 5 == 0) {
                kept.remove(random.nextInt(20_000));
            }
        }
        return hash(kept.entrySet().stream().sorted(Map.Entry.comparingByKey())
            .map(Object::toString).collect(Collectors.joining("|")).getBytes());
    }

    public static void main(String[] words) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(6);
        List<Callable<String>> tasks = new ArrayList<>();
        for (int n = 0; n < 6; n++) {
            int seed = n;
            tasks.add(() -> "buffers " + buffers(seed));
            tasks.add(() -> "packed " + packed(seed));
            tasks.add(() -> "objects " + objects(seed));
        }
        for (var answer : pool.invokeAll(tasks)) {
            System.out.println(answer.get());
        }
        pool.shutdown();
        for (int n = 0; n < 300; n++) {
            Thread thread = new Thread(() -> ByteBuffer.allocateDirect(5000).put(text(new Random(), 100)));
            thread.start();
            thread.join();
        }
        long primes = IntStream.range(2, 400_000).parallel()
            .filter(n -> IntStream.rangeClosed(2, (int) Math.sqrt(n)).allMatch(d -> n % d != 0)).count();
        System.out.println("primes " + primes);
    }
}
