%% Processes that exchange binaries, tables in memory, maps, sorting, compression; +Mea min makes
%% every block a block of malloc.
-module(work).
-export([main/0]).

main() ->
    io:format("~p~n", [erlang:system_info(alloc_util_allocators)]),
    io:format("ring ~p~n", [ring(200, 40000)]),
    io:format("workers ~p~n", [workers(8, 25000)]),
    io:format("table ~p~n", [table(100000)]),
    io:format("words ~p~n", [words(100000)]),
    Text = iolist_to_binary([[integer_to_binary(N), " line\n"] || N <- lists:seq(1, 300000)]),
    Packed = zlib:gzip(Text),
    io:format("gzip ~p ~p~n", [byte_size(Packed), zlib:gunzip(Packed) =:= Text]),
    io:format("regex ~p~n", [length(re:split(Text, "[37]\\d* line\n"))]),
    io:format("term ~p~n", [erlang:phash2(binary_to_term(term_to_binary(lists:seq(1, 300000), [compressed])))]),
    halt(0).

%% A message goes round a ring of processes, each of which adds to the binary and drops its copy.
ring(Count, Hops) ->
    Self = self(),
    Last = lists:foldl(fun(_, Next) -> spawn(fun() -> pass(Next) end) end, Self, lists:seq(1, Count)),
    Last ! {Hops, <<>>},
    back(Last, Hops).

pass(Next) ->
    receive
        stop -> Next ! stop;
        {N, Text} -> Next ! {N - 1, <<(binary:part(Text, 0, min(byte_size(Text), 900)))/binary, N:32, Text/binary>>}, shrink(Next)
    end.

shrink(Next) ->
    receive
        stop -> Next ! stop;
        {N, Text} when byte_size(Text) > 20000 -> Next ! {N - 1, binary:copy(binary:part(Text, 0, 100))}, shrink(Next);
        {N, Text} -> Next ! {N - 1, <<Text/binary, N:32>>}, shrink(Next)
    end.

back(Last, _) ->
    receive
        {N, Text} when N =< 0 -> Last ! stop, receive stop -> erlang:phash2(Text) end;
        {N, Text} -> Last ! {N, Text}, back(Last, N)
    end.

workers(Count, Rounds) ->
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), work(N, Rounds)} end) || N <- lists:seq(1, Count)],
    [receive {Pid, Answer} -> Answer end || Pid <- Pids].

work(Seed, Rounds) ->
    rand:seed(exsss, {Seed, 2, 3}),
    Kept = lists:foldl(fun(N, Map) ->
        Slot = rand:uniform(3000),
        New = Map#{Slot => {N, binary:copy(<<"s">>, rand:uniform(600)), [Slot, N]}},
        case N rem 3 of 0 -> maps:remove(rand:uniform(3000), New); _ -> New end
    end, #{}, lists:seq(1, Rounds)),
    erlang:phash2(lists:sort(maps:to_list(Kept))).

table(Count) ->
    Table = ets:new(kept, [set, public, {write_concurrency, true}]),
    Self = self(),
    [spawn_link(fun() ->
        [ets:insert(Table, {N, integer_to_binary(N * 7919), lists:duplicate(N rem 9, N)}) || N <- lists:seq(Part, Count, 4)],
        [ets:delete(Table, N) || N <- lists:seq(Part, Count, 12)],
        Self ! done
    end) || Part <- [1, 2, 3, 4]],
    [receive done -> ok end || _ <- [1, 2, 3, 4]],
    {ets:info(Table, size), erlang:phash2(lists:sort(ets:tab2list(Table)))}.

words(Count) ->
    Words = [integer_to_list(N * 7919 rem 1009) ++ "-" ++ integer_to_list(N) || N <- lists:seq(1, Count)],
    erlang:phash2({lists:usort(Words), string:join(lists:sublist(Words, 1000), ",")}).
