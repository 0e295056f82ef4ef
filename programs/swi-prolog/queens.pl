% Counts the ways to place queens, and keeps every one as a fact that is sorted at the end.
:- dynamic placed/1.

queens(Count, Board) :- numlist(1, Count, Rows), place(Rows, [], Board).

place([], Board, Board).
place(Rows, Before, Board) :- select(Row, Rows, Rest), safe(Before, Row, 1), place(Rest, [Row|Before], Board).

safe([], _, _).
safe([Other|Others], Row, Distance) :-
    Row =\= Other + Distance, Row =\= Other - Distance,
    Next is Distance + 1, safe(Others, Row, Next).

main :-
    current_prolog_flag(argv, Arguments), last(Arguments, Text), atom_number(Text, Count),
    forall(queens(Count, Board), assertz(placed(Board))),
    findall(Name-Board, (placed(Board), atomic_list_concat(Board, '-', Name)), Named),
    sort(1, @>=, Named, Sorted), length(Sorted, Length), Sorted = [First-_|_],
    format("~w ways, the last is ~w~n", [Length, First]).
