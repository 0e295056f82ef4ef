# Threads that share a queue and a hash, and children of fork while threads run.
use strict;
use warnings;
use threads;
use threads::shared;
use Thread::Queue;

my $queue = Thread::Queue->new;
my %sums : shared;
my @workers = map {
    threads->create(sub {
        while (defined(my $item = $queue->dequeue)) {
            my %local = map { $_ => "x$_" x ($_ % 7) } 1 .. $item % 200;
            my $sum = 0;
            $sum += length for values %local;
            lock %sums;
            $sums{$item} = $sum;
        }
    })
} 1 .. 3;
$queue->enqueue($_) for 1 .. 4000;
my @children = map {
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my @list = map { "child $_" } 1 .. 20000;
        require POSIX;
        POSIX::_exit(scalar(@list) == 20000 ? 7 : 1);
    }
    $pid;
} 1 .. 3;
print join(' ', map { waitpid $_, 0; $? >> 8 } @children), "\n";
$queue->end;
$_->join for @workers;
print join(' ', map { "$_:$sums{$_}" } sort { $a <=> $b } keys %sums), "\n";
