# Strings too long for a slot, arrays and hashes that grow: what Ruby takes from malloc.
require "json"
require "zlib"

def records(random, count)
  kept = {}
  count.times do |n|
    slot = random.rand(10_000)
    kept[slot] = [n, "s" * (40 + random.rand(400)), { slot => n.to_s * 12 }, [slot] * (n % 60)]
    kept.delete(random.rand(10_000)) if n % 3 == 0
  end
  Zlib.crc32(JSON.generate(JSON.parse(JSON.generate(kept.sort))))
end

def text(random, count)
  lines = (1..count).map { |n| "line #{n} #{"word " * random.rand(1..12)}#{n * 7919 % 1009}" }
  turned = lines.map { |line| line.gsub(/\d+/) { |digits| digits.reverse } }
  Zlib.crc32(turned.join("\n").scan(/\w+ \d+/).join(","))
end

random = Random.new(1)
ARGV[0].to_i.times do |turn|
  puts "#{turn} #{records(random, 100_000)} #{text(random, 25_000)}"
end
