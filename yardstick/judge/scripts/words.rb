# Records made of a text, grouped, sorted and turned to text again.
Entry = Struct.new(:words, :size, :tags)
entries = File.foreach(ARGV[0]).map do |line|
  words = line.split
  Entry.new(words, line.size, words.to_h { |word| [word.to_sym, word.upcase + line[0, 40]] })
end
groups = entries.group_by { |entry| entry.words.first }
groups.sort.each do |word, list|
  joined = list.sort_by { |entry| [entry.size, entry.words] }.map { |e| e.tags.values.join("|") }
  puts "#{word} #{list.size} #{joined.sum(&:size)}"
end
puts entries.map { |entry| entry.words.permutation(2).first(4).join }.join("\n").gsub(/[aeiou]+/, "-").size
