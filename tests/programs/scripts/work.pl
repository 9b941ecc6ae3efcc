# Hashes, nested structures, regular expressions, sorting, growing strings, a child by fork.
use strict;
use warnings;

my $seed = 12345;
sub rnd { $seed = ($seed * 1103515245 + 12345) & 0x7fffffff; return ($seed >> 8) % $_[0] }
my $sum = 0;
sub mix { my ($s) = @_; $sum = ($sum * 33 + unpack("%32C*", $s) + length $s) & 0xffffffff }

my %h;
for my $i (1 .. 400_000) {
    my $k = "key" . rnd(30_000);
    push @{ $h{$k} }, "v" x rnd(60);
    delete $h{ "key" . rnd(30_000) } if $i % 3 == 0;
}
mix("$_=" . scalar @{ $h{$_} }) for sort keys %h;
print scalar(keys %h), " keys, $sum\n";

my $text = join " ", map { "w" . rnd(500) . ("x" x rnd(9)) } 1 .. 60_000;
my %count;
$count{$1}++ while $text =~ /\bw(\d+)x*\b/g;
my @top = sort { $count{$b} <=> $count{$a} || $a <=> $b } keys %count;
print join(" ", map { "$_:$count{$_}" } @top[0 .. 9]), "\n";
(my $swapped = $text) =~ s/w(\d+)(x+)/$2$1/g;
mix($swapped);

my @tree;
sub grow { my ($d) = @_; return $d ? [ map { grow($d - 1) } 1 .. 4 ] : { n => rnd(9), s => "z" x rnd(40) } }
sub weigh { my ($t) = @_; my $w = 0; if (ref $t eq "ARRAY") { $w += weigh($_) for @$t } else { $w = $t->{n} + length $t->{s} } return $w }
for (1 .. 20) { @tree = map { grow(6) } 1 .. 2; print weigh(\@tree), "\n" }

my $pid = open(my $child, "-|") // die "fork: $!";
if (!$pid) { my @big = map { "c$_" x 5 } 1 .. 20_000; print length(join "", @big), "\n"; exit 0 }
print "child: ", <$child>;
close $child;

open my $out, ">", "result.txt" or die;
print $out "$_\n" for sort { $a cmp $b } map { sprintf "%08x-%s", rnd(1 << 30), "p" x rnd(30) } 1 .. 50_000;
close $out;
print "$sum\n";
