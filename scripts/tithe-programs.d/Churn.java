import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

/** Run by java.sh: maps, direct buffers (blocks of malloc that only Java's heap points to) and zlib in two threads. */
public class Churn {
    static long work(int seed) throws Exception {
        Random random = new Random(seed);
        Map<String, List<Integer>> map = new TreeMap<>();
        for (int i = 0; i < 100_000; i++) map.computeIfAbsent("key " + random.nextInt(5000), k -> new ArrayList<>()).add(i);
        long sum = 0;
        for (var entry : map.entrySet()) sum = sum * 31 + entry.getKey().hashCode() + entry.getValue().size();
        ByteBuffer[] kept = new ByteBuffer[200];
        for (int i = 0; i < 5000; i++) {
            int place = random.nextInt(kept.length);
            if (kept[place] != null) {
                for (int j = 0; j < kept[place].capacity(); j += 64)
                    if (kept[place].get(j) != (byte) place) throw new IllegalStateException("a buffer has changed");
            }
            kept[place] = ByteBuffer.allocateDirect(1000 + random.nextInt(30000));
            for (int j = 0; j < kept[place].capacity(); j += 64) kept[place].put(j, (byte) place);
        }
        for (int i = 0; i < 200; i++) {
            Deflater deflater = new Deflater();
            byte[] input = ("text " + seed + " " + i).repeat(500).getBytes();
            deflater.setInput(input);
            deflater.finish();
            byte[] out = new byte[10000];
            int n = deflater.deflate(out);
            Inflater inflater = new Inflater();
            inflater.setInput(out, 0, n);
            sum = sum * 31 + inflater.inflate(new byte[20000]);
            if (i % 2 == 0) {
                deflater.end();
                inflater.end();
            }
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Future<Long>> futures = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int seed = i;
            futures.add(pool.submit(() -> work(seed)));
        }
        for (var future : futures) System.out.println(future.get());
        pool.shutdown();
        System.gc();
    }
}
