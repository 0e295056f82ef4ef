// Marks requests for heaptoll's events layer (include/heaptoll_events.h), by a library of two functions. Without the
// property `heaptoll.events`, which names it, nothing is marked.
final class Requests {
    private static final boolean MARKED = load();

    private static boolean load() {
        String library = System.getProperty("heaptoll.events");
        if (library == null) return false;
        System.load(library);
        return true;
    }

    static void begun() {
        if (MARKED) begin();
    }

    static void ended(int kind) {
        if (MARKED) end(kind);
    }

    private static native void begin();

    private static native void end(int kind);

    private Requests() { }
}
