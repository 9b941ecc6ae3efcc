% Matrices, cells, structures, strings and sorting.
rand("twister", 7);
function show(name, x)
  printf("%s %d %.9g\n", name, numel(x), sum(double(x(:))));
end
function s = total(k)
  s = 0;
  if isstruct(k)
    s = sum(k.data);
  end
end
kept = cell(1, 500);
for n = 1:8000
  slot = mod(n * 7919, 500) + 1;
  kept{slot} = struct("n", n, "data", zeros(1, mod(n, 700) + 1) + n, "name", sprintf("item %d", n));
  if mod(n, 3) == 0
    kept{mod(n * 31, 500) + 1} = [];
  end
end
show("kept", cellfun(@(k) total(k), kept));
a = floor(rand(300) * 100);
show("product", a * a');
show("solve", round(((a + 5000 * eye(300)) \ a) * 1e6));
show("eig", round(sort(abs(eig(a(1:120, 1:120)))) * 1e3));
show("fft", round(abs(fft(a(:)))));
show("sort", sort(a(:))(1:777));
s = sparse(floor(rand(1, 20000) * 2000) + 1, floor(rand(1, 20000) * 2000) + 1, 1, 2000, 2000);
show("sparse", s * s');
text = "";
for n = 1:1500
  text = [text sprintf("line %d;", n)];
end
parts = strsplit(text, ";");
show("parts", cellfun(@numel, parts));
show("replaced", regexprep(text, '(\d)(\d)', '$2$1') + 0);
m = containers.Map();
for n = 1:2000
  m(sprintf("key%d", mod(n * 31, 1500))) = n;
end
show("map", cell2mat(values(m)));
big = [];
for n = 1:1500
  big(end + 1:end + 50) = n;
end
show("grown", big);
show("cumulated", cumsum(ones(2000, 500), 2));
