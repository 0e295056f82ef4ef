# Fills paragraphs from a list of words, as gawk/fill.awk does: each line is justified to a width, spaces put in from
# the left and from the right in turn. Only the line at hand is held, so that next to nothing is alive.
use strict;
use warnings;

my ( $width, $indent ) = ( 70, 5 );
my ( @held, $filled, $taken );
my ( $paragraphs, $lines, $letters ) = ( 0, 0, 0 );

sub open_paragraph {
    @held   = ();
    $filled = $indent;
    $taken  = 0;
    $paragraphs++;
}

sub beginning { return $taken <= @held ? ' ' x $indent : '' }

sub plain {
    $lines++;
    return beginning() . join( ' ', @held );
}

# As many more spaces as the width asks for; what does not divide goes to the left of one line and to the right of the
# next.
sub justified {
    my ( $missing, $gap ) = ( $width - $filled, $#held );
    my $text = beginning();
    for my $at ( 0 .. $#held ) {
        if ($at) {
            my $extra = int( $missing / $gap );
            my $left = $lines % 2 ? $at <= $missing % $gap : $gap - $at < $missing % $gap;
            $text .= ' ' x ( $extra + 1 + ( $left ? 1 : 0 ) );
        }
        $text .= $held[$at];
    }
    $lines++;
    return $text;
}

sub take {
    my ($word) = @_;
    if ( $filled + length($word) + ( @held ? 1 : 0 ) > $width ) {
        print justified(), "\n";
        @held   = ();
        $filled = 0;
    }
    $filled += length($word) + ( @held ? 1 : 0 );
    push @held, $word;
    $letters += length $word;

    # A sentence's end closes a paragraph that is long enough.
    if ( ++$taken > 60 && $word =~ /[.!?]$/ ) {
        print plain(), "\n\n";
        open_paragraph();
    }
}

open_paragraph();
while ( my $line = <STDIN> ) {
    take($_) for split ' ', $line;
}
print plain(), "\n" if @held;
print "$paragraphs paragraphs, $lines lines, $letters letters\n";
