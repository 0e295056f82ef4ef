# Indexes a text with several threads, each over its own share of the lines and with an interpreter of its own, then
# joins the results. All threads allocate at the same time. Prints integers only.
use strict;
use warnings;
use threads;

my ( $path, $count, $rounds ) = @ARGV;
die "usage: index.pl FILE THREADS ROUNDS\n" unless defined $rounds;

sub index_share {
    my ($share) = @_;
    my ( $checksum, $words, $pairs ) = ( 0, 0, 0 );
    for my $round ( 1 .. $rounds ) {
        open my $file, '<', $path or die "cannot read $path: $!\n";
        my ( %index, %pairs );
        while ( my $line = <$file> ) {
            next if $. % $count != $share;
            my @words = split /[^a-z]+/, lc $line;
            my $last  = '';
            for my $word (@words) {
                push @{ $index{$word} }, $.;
                $pairs{"$last $word"}++;
                $last = $word;
            }
        }
        close $file;
        for my $word ( sort keys %index ) {
            my $text = join ',', @{ $index{$word} };
            $checksum = ( $checksum * 31 + $round + unpack( '%32C*', "$word:$text" ) ) % 1000000007;
        }
        $words += keys %index;
        $pairs += keys %pairs;
    }
    return ( $checksum, $words, $pairs );
}

my @threads = map {
    my $share = $_;
    threads->create( { context => 'list' }, sub { index_share($share) } )
} 0 .. $count - 1;
for my $thread (@threads) {
    my ( $checksum, $words, $pairs ) = $thread->join;
    print "words $words pairs $pairs checksum $checksum\n";
}
