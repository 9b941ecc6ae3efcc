# Strings, arrays, hashes and objects that come and go; threads, fibers, ractors of one kind of
# work; the collector with compaction; children by fork.
require "digest"
require "json"
require "zlib"
require "set"

Node = Struct.new(:key, :left, :right)

def insert(node, key)
  return Node.new(key) unless node
  key < node.key ? node.left = insert(node.left, key) : node.right = insert(node.right, key)
  node
end

def depth(node) = node ? 1 + [depth(node.left), depth(node.right)].max : 0

def structures(seed, rounds)
  random = Random.new(seed)
  kept = {}
  digest = Digest::SHA256.new
  rounds.times do |n|
    slot = random.rand(3000)
    kept[slot] = [n, "s" * random.rand(300), { slot => n.to_s }, [slot] * (slot % 60)]
    kept.delete(random.rand(3000)) if n % 3 == 0
    GC.compact if n % 40_000 == 20_000
    digest << JSON.parse(JSON.generate(kept.sort.to_h)).to_s if n % 20_000 == 0
  end
  digest << kept.sort.map { |k, v| "#{k}=#{v[1].length}" }.join(",")
  digest.hexdigest[0, 24]
end

puts "alone #{structures(1, 100_000)}"
random = Random.new(2)
tree = nil
60_000.times { tree = insert(tree, random.rand(1 << 30)) }
puts "tree #{depth(tree)}"
text = (1..60_000).map { |n| "line #{n} #{n * 7919 % 1009}" }.join("\n")
puts "scan #{text.scan(/(\d+) (\d+)/).sum { |a, b| a.to_i * b.to_i }}"
puts "gsub #{Digest::SHA256.hexdigest(text.gsub(/\d+/) { |d| d.reverse })[0, 16]}"
puts "words #{text.split.tally.sort_by { |w, n| [-n, w] }.first(5)}"
packed = Zlib.deflate(text, 9)
puts "zlib #{packed.length} #{Zlib.inflate(packed) == text}"
puts "symbols #{(1..30_000).map { |n| :"name_#{n}" }.to_set.size}"
puts "big #{Digest::SHA256.hexdigest((3**40_000).to_s)[0, 16]}"
fibers = (1..2000).map { |n| Fiber.new { Fiber.yield("f" * n); n } }
puts "fibers #{fibers.sum { |f| f.resume.length + f.resume }}"
threads = (1..4).map { |n| Thread.new { structures(n + 10, 15_000) } }
threads.each_with_index { |t, n| puts "thread #{n} #{t.value}" }
3.times do |n|
  reader, writer = IO.pipe
  pid = fork do
    writer.write structures(n + 20, 15_000)
    writer.close
    exit!(0)
  end
  writer.close
  puts "child #{n} #{reader.read}"
  Process.wait(pid)
end
GC.verify_compaction_references(toward: :empty, double_heap: false)
puts "after compaction #{structures(5, 20_000)}"
