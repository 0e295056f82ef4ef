# Strings, hashes and objects by the hundred thousand, collections and compaction in the middle, threads and fibres.
Point = Struct.new(:x, :y, :name)
words = File.read(ARGV[0]).split
counts = Hash.new { |hash, key| hash[key] = [] }
words.each_with_index { |word, index| counts[word.to_sym] << index }
puts counts.sort_by { |word, places| [-places.size, word] }.first(20).map { |word, places| "#{word} #{places.size} #{places.sum}" }
GC.start
points = (0...200_000).map { |i| Point.new(i, i * i, "point #{i} #{'x' * (i % 40)}") }
puts points.group_by { |point| point.x % 97 }.map { |key, list| [key, list.sum(&:y) % 1_000_007] }.inspect
GC.compact if GC.respond_to?(:compact)
threads = 4.times.map do |number|
  Thread.new do
    list = (0...30_000).map { |i| "#{number}-#{i}".hash && (i * number).to_s }
    list.map(&:size).sum
  end
end
puts threads.map(&:value).inspect
fibres = 200.times.map { |number| Fiber.new { 3.times { |i| Fiber.yield "fibre #{number} #{i} #{[number] * i}" }; "end #{number}" } }
puts fibres.map { |fibre| [fibre.resume, fibre.resume, fibre.resume, fibre.resume] }.flatten.join(",").sum
big = (1..2000).reduce(:*)
puts big.to_s.size, big.digits.sum
puts words.join(" ").gsub(/(\w)(\w+)/) { "#{$2}#{$1}ay" }.sum
reader, writer = IO.pipe
pid = fork { GC.start; writer.puts points.last(1000).sum(&:y); writer.close; exit!(0) }
writer.close
puts reader.read
Process.wait(pid)
puts $?.exitstatus
points = nil
GC.start
puts ObjectSpace.each_object(Point).count < 1000 ? "collected" : "kept"
