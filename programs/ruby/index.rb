# Indexes a text: words to their lines as objects, pairs of words as symbols and arrays, then a report by frequency.
# usage: index.rb TEXT ROUNDS

Entry = Struct.new(:word, :lines, :neighbours)

def index(path)
  entries = {}
  File.foreach(path).with_index do |line, number|
    words = line.downcase.scan(/[a-z]+/)
    words.each_with_index do |word, at|
      entry = (entries[word] ||= Entry.new(word, [], Hash.new(0)))
      entry.lines << [number, at]
      entry.neighbours[words[at + 1]] += 1 if at + 1 < words.size
    end
  end
  entries
end

report = nil
ARGV[1].to_i.times do
  entries = index(ARGV[0])
  report = entries.values.sort_by { |entry| [-entry.lines.size, entry.word] }.map do |entry|
    likely = entry.neighbours.max_by { |word, count| [count, word] }
    "#{entry.word} #{entry.lines.size} #{entry.lines.first.join(':')} #{likely&.join('=')}"
  end
end
puts report
