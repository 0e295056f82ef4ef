/* GCBench (gcbench.c) in Java: the same trees in the same order, the same lines on standard output; collections and how
 * long they took on standard error. */
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

public final class GCBench {
    static final class Node {
        Node left, right;
        final int height, mark;

        Node(Node left, Node right, int height) {
            this.left = left;
            this.right = right;
            this.height = height;
            this.mark = height ^ 0x5a;
            nodes++;
        }
    }

    static long nodes; // made so far

    static long treeSize(int depth) {
        return (1L << (depth + 1)) - 1;
    }

    static void populate(Node root) {
        if (root.height == 0) return;
        root.left = new Node(null, null, root.height - 1);
        root.right = new Node(null, null, root.height - 1);
        populate(root.left);
        populate(root.right);
    }

    static Node build(int depth) {
        if (depth == 0) return new Node(null, null, 0);
        Node left = build(depth - 1);
        Node right = build(depth - 1);
        return new Node(left, right, depth);
    }

    static long intact(Node root) {
        if (root == null) return 0;
        return (root.mark == (root.height ^ 0x5a) ? 1 : 0) + intact(root.left) + intact(root.right);
    }

    private static void report() {
        long collections = 0, milliseconds = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collections += collector.getCollectionCount();
            milliseconds += collector.getCollectionTime();
        }
        System.err.println("gcbench: allocator=java collections=" + collections + " collecting_ms=" + milliseconds);
    }

    public static void main(String[] arguments) {
        int[] sizes = {18, 16, 500000, 4, 16, 1};
        for (int i = 0; i < arguments.length; i++) sizes[i] = Integer.parseInt(arguments[i]);
        int stretch = sizes[0], longLived = sizes[1], elements = sizes[2], shallowest = sizes[3], deepest = sizes[4];
        StringBuilder out = new StringBuilder();

        build(stretch);
        out.append("stretch tree of depth ").append(stretch).append('\n');

        Node tree = new Node(null, null, longLived);
        populate(tree);
        double[] array = new double[elements];
        for (int i = 0; i < elements / 2; i++) array[i] = 1.0 / (i + 1);
        out.append("long-lived tree of depth ").append(longLived).append(" and array of ").append(elements)
            .append(" doubles\n");

        for (int round = 0; round < sizes[5]; round++) {
            for (int depth = shallowest; depth <= deepest; depth += 2) {
                long trees = 2 * treeSize(stretch) / treeSize(depth);
                for (long i = 0; i < trees; i++) populate(new Node(null, null, depth));
                for (long i = 0; i < trees; i++) build(depth);
                out.append("depth ").append(depth).append(": ").append(trees)
                    .append(" trees from the root, as many from the leaves\n");
            }
        }

        long found = intact(tree);
        int wrong = 0;
        for (int i = 0; i < elements / 2; i++) if (array[i] != 1.0 / (i + 1)) wrong++;
        out.append(nodes).append(" nodes made; of the long-lived, ").append(found).append(" of ")
            .append(treeSize(longLived)).append(" nodes and all but ").append(wrong).append(" doubles are intact\n");
        System.out.print(out);
        System.out.flush();
        report();
        if (found != treeSize(longLived) || wrong != 0) System.exit(1);
    }
}
