% Facts asserted and retracted, atoms, strings, big numbers, tabling, grammars, global variables,
% the collectors of terms and of atoms, threads with message queues.
:- use_module(library(assoc)).
:- use_module(library(aggregate)).
:- use_module(library(apply)).
:- use_module(library(lists)).
:- use_module(library(dcg/basics)).

:- dynamic kept/3.
:- table path/2.

random_next(Seed, Next, Bound, Value) :-
    Next is (Seed * 1103515245 + 12345) /\ 0x7fffffff,
    Value is (Next >> 8) mod Bound.

% As many facts come as go, in an order of their own.
facts(0, _) :- !.
facts(N, Seed) :-
    random_next(Seed, Seed1, 2000, Slot),
    retractall(kept(Slot, _, _)),
    atom_concat(name_, N, Name),
    length(List, 5), maplist(=(Slot), List),
    assertz(kept(Slot, Name, list(List, "a string", N))),
    M is N - 1,
    facts(M, Seed1).

report_facts :-
    findall(Slot-Name, kept(Slot, Name, _), Pairs),
    msort(Pairs, Sorted), length(Sorted, Count),
    text_sum(Sorted, Sum),
    format("facts ~d ~d~n", [Count, Sum]).

% A hash that depends on the text of a term alone.
text_sum(Term, Sum) :-
    format(string(Text), "~q", [Term]),
    string_codes(Text, Codes),
    foldl(mix, Codes, 7, Sum).
mix(Code, Sum0, Sum) :- Sum is (Sum0 * 31 + Code) mod 1000000007.

edge(A, B) :- between(0, 300, A), ( B is (A * 7 + 1) mod 301 ; B is (A * 5 + 3) mod 301 ).
path(A, B) :- edge(A, B).
path(A, B) :- path(A, C), edge(C, B).

queens(N, Queens) :- numlist(1, N, Rows), select_queens(Rows, [], Queens).
select_queens([], Queens, Queens).
select_queens(Rows, Placed, Queens) :-
    select(Q, Rows, Rest), safe(Q, 1, Placed), select_queens(Rest, [Q|Placed], Queens).
safe(_, _, []).
safe(Q, D, [P|Ps]) :- Q =\= P + D, Q =\= P - D, D1 is D + 1, safe(Q, D1, Ps).

expression(V) --> term(T), rest(T, V).
rest(A, V) --> "+", !, term(T), { B is A + T }, rest(B, V).
rest(A, V) --> "-", !, term(T), { B is A - T }, rest(B, V).
rest(V, V) --> [].
term(V) --> factor(F), more(F, V).
more(A, V) --> "*", !, factor(F), { B is (A * F) mod 1000003 }, more(B, V).
more(V, V) --> [].
factor(V) --> "(", !, expression(V), ")".
factor(V) --> integer(V).

group(I, Text) :- format(string(Text), "(~d+~d*~d)", [I, I, I]).
grammar(N) :-
    numlist(1, N, Numbers),
    maplist(group, Numbers, Parts),
    atomic_list_concat(Parts, '-', Text),
    atom_codes(Text, Codes),
    phrase(expression(V), Codes),
    format("grammar ~d~n", [V]).

put(N, Tree0, Tree) :- K is N * 7919 mod 60013, put_assoc(K, Tree0, N, Tree).
trees :-
    numlist(1, 60000, Numbers),
    empty_assoc(Empty), foldl(put, Numbers, Empty, Tree),
    assoc_to_keys(Tree, Keys), length(Keys, Count), last(Keys, Last),
    format("tree ~d ~d~n", [Count, Last]).

atoms :-
    forall(between(1, 150000, N), ( atom_concat(passing_, N, A), atom_length(A, _) )),
    garbage_collect_atoms,
    findall(A, ( between(1, 20000, N), format(atom(A), "kept ~d", [N]) ), Atoms),
    sort(0, @>=, Atoms, [First|_]),
    format("atoms ~q~n", [First]).

texts :-
    findall(S, ( between(1, 30000, N), W is N * 7919 mod 1009, format(string(S), "w~d", [W]) ), Words),
    atomic_list_concat(Words, ' ', Atom), atom_string(Atom, Text),
    split_string(Text, " ", "", Again), length(Again, Count),
    aggregate_all(count, sub_string(Text, _, _, _, "w77"), Found),
    format("text ~d ~d~n", [Count, Found]).
numbers :-
    X is 3 ** 60000 mod 1000000007, Y is 7 ** 4000, Z is gcd(Y - 1, 6 ** 3000 - 1),
    Q is 22 rdiv 7 + 1 rdiv 1000003,
    number_codes(Y, Codes), length(Codes, Digits),
    format("numbers ~d ~d ~d ~q~n", [X, Digits, Z, Q]).

worker(Queue, Done) :-
    thread_get_message(Queue, Message),
    (   Message = work(N)
    ->  findall(X-s(N, "text", [X]), ( between(1, 3000, I), X is I * N mod 997 ), List),
        sort(1, @=<, List, Sorted), last(Sorted, Last-_), length(Sorted, Length),
        atom_concat(answer_, N, Atom),
        thread_send_message(Done, N-answer(Atom, Length, Last)),
        worker(Queue, Done)
    ;   true
    ).

threads :-
    message_queue_create(Queue), message_queue_create(Done),
    findall(Id, ( between(1, 4, _), thread_create(worker(Queue, Done), Id) ), Ids),
    forall(between(1, 80, N), thread_send_message(Queue, work(N))),
    findall(A, ( between(1, 80, _), thread_get_message(Done, A) ), Answers),
    forall(member(_, Ids), thread_send_message(Queue, end)),
    forall(member(Id, Ids), thread_join(Id, true)),
    msort(Answers, Sorted), text_sum(Sorted, Sum),
    message_queue_destroy(Queue), message_queue_destroy(Done),
    format("threads ~d~n", [Sum]).

work :-
    facts(200000, 7), report_facts,
    aggregate_all(count, path(_, _), Paths), format("paths ~d~n", [Paths]),
    aggregate_all(count, queens(8, _), Queens), format("queens ~d~n", [Queens]),
    grammar(6000), trees, atoms, texts, numbers, threads,
    garbage_collect, report_facts.

main :- catch(work, Error, ( print_message(error, Error), halt(1) )), halt(0).
