# A service whose life the judge looks at: commands arrive on a socket file. ruby service.rb SIZE
require "socket"
size = ARGV[0].to_i
lot = Random.new(5)
kept = {}
made = 0
record = lambda do
  made += 1
  [made, "text #{made} " * lot.rand(5..90), { made => "y" * lot.rand(40..2000) }]
end
trap("TERM") { exit!(0) }
door = UNIXServer.new("socket")
File.write("pid", "#{Process.pid}\n")
loop do
  client = door.accept
  case client.readpartial(64).strip
  when "load" then size.times { |at| kept[at] = record.call }
  when "free" then kept.clear && GC.start
  when "light" then 200.times { record.call }
  end
  client.write("done\n")
  client.close
end
