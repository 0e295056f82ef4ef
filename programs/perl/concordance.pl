# A concordance of a text: for every word the lines it stands in and the words next to it. Prints integers and words
# only, in sorted order.
use strict;
use warnings;

my ( %lines, %nearby, %opening, @sentences );
my $number = 0;
while ( my $line = <STDIN> ) {
    $number++;
    chomp $line;
    my @words = map { lc } ( $line =~ /([A-Za-z]+)/g );
    next unless @words;
    push @sentences, { number => $number, words => \@words, kind => substr( $line, -1 ) };
    for my $at ( 0 .. $#words ) {
        push @{ $lines{ $words[$at] } }, $number;
        $nearby{ $words[ $at - 1 ] }{ $words[$at] }++ if $at;
    }
    $opening{ join ' ', @words[ 0 .. ( $#words < 1 ? $#words : 1 ) ] }++;
}

my @frequent = sort { @{ $lines{$b} } <=> @{ $lines{$a} } || $a cmp $b } keys %lines;
printf "%d words, %d lines, %d openings\n", scalar @frequent, $number, scalar keys %opening;
for my $word ( @frequent[ 0 .. ( $#frequent < 19 ? $#frequent : 19 ) ] ) {
    my $next = $nearby{$word} || {};
    my @best = sort { $next->{$b} <=> $next->{$a} || $a cmp $b } keys %$next;
    my $shown = join ' ', map { "$_:$next->{$_}" } grep { defined } @best[ 0 .. 4 ];
    printf "%s %d %s\n", $word, scalar @{ $lines{$word} }, $shown;
}

# Every sentence again, its words by length and backwards: a checksum over the text as a whole.
my $sum = 0;
for my $sentence (@sentences) {
    my @sorted = sort { length $a <=> length $b || $a cmp $b } @{ $sentence->{words} };
    my $text   = join '-', map { scalar reverse } @sorted;
    $text =~ s/([aeiou])([^aeiou])/$2$1/g;
    $sum = ( $sum * 31 + unpack( '%32C*', $text . $sentence->{kind} ) + $sentence->{number} ) % 1000000007;
}
print "checksum $sum\n";
