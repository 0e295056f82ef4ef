// Indexes generated documents by Lucene and searches them, several times in one process. The words of documents have
// Zipf's frequencies. Standard output has the counts of hits, which are the same in every round and under every collector;
// standard error has the time of the first round and of the later ones, since a virtual machine compiles while it runs.
import java.io.IOException;
import java.util.Arrays;
import java.util.Random;

import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopScoreDocCollector;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

final class Lucene {
    private static final int VOCABULARY = 20_000;
    private static final String[] SYLLABLES = {
        "ka", "lo", "mi", "ne", "ru", "sa", "te", "vo", "zi", "ba", "do", "fe", "gu", "ha", "ji", "pe"
    };

    private final double[] upTo = new double[VOCABULARY];
    private final String[] words = new String[VOCABULARY];

    private Lucene() {
        double sum = 0;
        for (int rank = 0; rank < VOCABULARY; rank++) {
            sum += 1.0 / (rank + 1);
            upTo[rank] = sum;
            StringBuilder word = new StringBuilder();
            for (int rest = rank + 16; rest > 0; rest /= 16) word.append(SYLLABLES[rest % 16]);
            words[rank] = word.toString();
        }
    }

    private String word(Random random) {
        int at = Arrays.binarySearch(upTo, random.nextDouble() * upTo[VOCABULARY - 1]);
        return words[Math.min(at < 0 ? -at - 1 : at, VOCABULARY - 1)];
    }

    private Directory index(int documents, int length) throws IOException {
        Random random = new Random(1992);
        Directory directory = new ByteBuffersDirectory();
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer());
        config.setMergeScheduler(new SerialMergeScheduler());
        config.setRAMBufferSizeMB(4);
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            for (int number = 0; number < documents; number++) {
                StringBuilder text = new StringBuilder();
                for (int at = 0; at < length; at++) text.append(word(random)).append(' ');
                Document document = new Document();
                document.add(new TextField("text", text.toString(), Field.Store.NO));
                writer.addDocument(document);
            }
        }
        return directory;
    }

    private Query query(int kind, Random random) {
        String one = word(random), other = word(random);
        switch (kind) {
            case 0: return new TermQuery(new Term("text", one));
            case 1: return both(one, other, BooleanClause.Occur.MUST);
            case 2: return both(one, other, BooleanClause.Occur.SHOULD);
            case 3: return new PhraseQuery("text", one, other);
            default: return new PrefixQuery(new Term("text", one.substring(0, Math.min(4, one.length()))));
        }
    }

    private static Query both(String one, String other, BooleanClause.Occur occur) {
        return new BooleanQuery.Builder()
            .add(new TermQuery(new Term("text", one)), occur)
            .add(new TermQuery(new Term("text", other)), occur)
            .build();
    }

    // Answers queries; gives the sum of all hits and of the numbers of the best documents.
    private long[] search(Directory directory, int queries, boolean marked) throws IOException {
        Random random = new Random(2022);
        long hits = 0, best = 0;
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            searcher.setQueryCache(null);
            for (int number = 0; number < queries; number++) {
                int kind = random.nextInt(5);
                Query query = query(kind, random);
                if (marked) Requests.begun();
                TopDocs found = searcher.search(query, TopScoreDocCollector.createSharedManager(10, null, Integer.MAX_VALUE));
                if (marked) Requests.ended(kind);
                hits += found.totalHits.value;
                for (ScoreDoc one : found.scoreDocs) best += one.doc;
            }
        }
        return new long[] {hits, best};
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 6) {
            System.err.println("usage: Lucene search|index DOCUMENTS WORDS QUERIES UNMARKED-ROUNDS MARKED-ROUNDS");
            System.exit(2);
        }
        boolean searches = arguments[0].equals("search");
        int[] number = Arrays.stream(arguments).skip(1).mapToInt(Integer::parseInt).toArray();
        Lucene lucene = new Lucene();
        int rounds = number[3] + number[4];
        double first = 0, later = 0;
        Directory directory = null;
        long[] before = null;
        for (int round = 0; round < rounds; round++) {
            long begun = System.nanoTime();
            if (!searches || round == 0) directory = lucene.index(number[0], number[1]);
            long indexed = System.nanoTime();
            long[] found = lucene.search(directory, number[2], round >= number[3]);
            long ended = System.nanoTime();
            double ms = (ended - (searches ? indexed : begun)) / 1e6;
            if (round == 0) first = ms; else later += ms / (rounds - 1);
            if (before != null && !Arrays.equals(before, found)) throw new IllegalStateException("other hits in a round");
            before = found;
        }
        System.out.println("documents " + number[0] + ", queries " + number[2] + ", rounds " + rounds);
        System.out.println("hits " + before[0] + ", best " + before[1]);
        System.err.printf("first_round_ms=%.1f later_round_ms=%.1f%n", first, later);
    }
}
