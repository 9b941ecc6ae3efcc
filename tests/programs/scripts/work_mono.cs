// Collections, strings, big numbers, LINQ, regular expressions, unmanaged memory, threads, tasks.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Linq.Expressions;
using System.Numerics;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

static class Work
{
    static string Hash(string text)
    {
        using (var sha = SHA256.Create())
            return BitConverter.ToString(sha.ComputeHash(Encoding.UTF8.GetBytes(text)), 0, 8);
    }

    // Entries of many kinds that come and go.
    static string Structures(int seed, int rounds)
    {
        var random = new Random(seed);
        var kept = new SortedDictionary<int, object[]>();
        for (int n = 0; n < rounds; n++) {
            int slot = random.Next(3000);
            kept[slot] = new object[] { n, new string('s', random.Next(300)), new int[random.Next(60)] };
            if (n % 3 == 0)
                kept.Remove(random.Next(3000));
        }
        return Hash(string.Join(",", kept.Select(e => e.Key + "=" + ((string)e.Value[1]).Length)));
    }

    // Blocks outside the collector's heap, of all the ways that lead to malloc.
    static long Unmanaged(int seed, int rounds)
    {
        var random = new Random(seed);
        var kept = new IntPtr[400];
        long total = 0;
        for (int n = 0; n < rounds; n++) {
            int slot = random.Next(kept.Length);
            if (kept[slot] != IntPtr.Zero) {
                total += Marshal.ReadByte(kept[slot]);
                Marshal.FreeHGlobal(kept[slot]);
            }
            kept[slot] = Marshal.AllocHGlobal(1 + random.Next(3000));
            Marshal.WriteByte(kept[slot], (byte)n);
            if (n % 5 == 0)
                kept[slot] = Marshal.ReAllocHGlobal(kept[slot], (IntPtr)(1 + random.Next(9000)));
            if (n % 7 == 0) {
                IntPtr text = Marshal.StringToHGlobalAnsi("text " + n);
                total += Marshal.PtrToStringAnsi(text).Length;
                Marshal.FreeHGlobal(text);
            }
        }
        foreach (IntPtr block in kept.Where(b => b != IntPtr.Zero))
            Marshal.FreeHGlobal(block);
        return total;
    }

    // Methods compiled while the program runs, each of which the runtime keeps or drops.
    static long Emitted(int count)
    {
        long total = 0;
        for (int n = 0; n < count; n++) {
            var method = new DynamicMethod("made" + n, typeof(int), new[] { typeof(int) });
            ILGenerator code = method.GetILGenerator();
            code.Emit(OpCodes.Ldarg_0);
            for (int k = 0; k < 20; k++) {
                code.Emit(OpCodes.Ldc_I4, n + k);
                code.Emit(OpCodes.Xor);
            }
            code.Emit(OpCodes.Ret);
            total += ((Func<int, int>)method.CreateDelegate(typeof(Func<int, int>)))(n * 3);
            ParameterExpression x = Expression.Parameter(typeof(int), "x");
            if (n % 10 == 0)
                total += Expression.Lambda<Func<int, int>>(
                    Expression.Multiply(x, Expression.Constant(n)), x).Compile()(7);
        }
        return total;
    }

    static void Main()
    {
        CultureInfo.DefaultThreadCurrentCulture = CultureInfo.InvariantCulture;
        Console.WriteLine("alone " + Structures(1, 300000));
        string[] lines = Enumerable.Range(0, 60000).Select(n => "line " + n + " " + n * 7919L % 1009).ToArray();
        var groups = lines.GroupBy(l => l.Split(' ')[2]).OrderBy(g => g.Key, StringComparer.Ordinal);
        Console.WriteLine("groups " + Hash(string.Join(";", groups.Select(g => g.Key + g.Count()))));
        string text = string.Join("\n", lines);
        Console.WriteLine("replaced " + Hash(Regex.Replace(text, @"(\d)(\d)", "$2$1")));
        Console.WriteLine("matches " + Regex.Matches(text, @"^line (\d+) 7\d*$", RegexOptions.Multiline).Count);
        Console.WriteLine("big " + BigInteger.Pow(3, 20000) % 1000000007 + " " + Hash(BigInteger.Pow(7, 3000).ToString()));
        Console.WriteLine("unmanaged " + Unmanaged(2, 300000));
        Console.WriteLine("emitted " + Emitted(2000));

        var answers = new ConcurrentDictionary<int, string>();
        Thread[] threads = Enumerable.Range(0, 4).Select(n => new Thread(
            () => answers[n] = Structures(10 + n, 60000) + " " + Unmanaged(20 + n, 60000))).ToArray();
        foreach (Thread thread in threads)
            thread.Start();
        foreach (Thread thread in threads)
            thread.Join();
        foreach (var answer in answers.OrderBy(a => a.Key))
            Console.WriteLine("thread " + answer.Key + " " + answer.Value);
        Task<string>[] tasks = Enumerable.Range(0, 200).Select(n => Task.Run(() => Hash("task " + n))).ToArray();
        Task.WaitAll(tasks);
        Console.WriteLine("tasks " + Hash(string.Join(" ", tasks.Select(t => t.Result))));
        int caught = 0;
        for (int n = 0; n < 3000; n++) {
            try {
                throw new InvalidOperationException("number " + n);
            } catch (InvalidOperationException failure) {
                caught += failure.Message.Length;
            }
        }
        Console.WriteLine("caught " + caught);
        GC.Collect();
        GC.WaitForPendingFinalizers();
        Console.WriteLine("after collection " + Structures(5, 30000));
    }
}
