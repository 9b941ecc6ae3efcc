;; Lists, vectors, strings, hash tables, big numbers and threads, compiled and interpreted.
(import scheme (chicken base) (chicken format) (chicken gc) (chicken sort) (chicken string)
        (chicken memory) (chicken irregex) (chicken process-context) srfi-4)

(define seed 7)
(define (random-below n)
  (set! seed (modulo (+ (* seed 1103515245) 12345) 2147483648))
  (modulo (quotient seed 256) n))

(define (hash-text text)
  (let loop ((n 0) (sum 7))
    (if (= n (string-length text))
        sum
        (loop (+ n 1) (modulo (+ (* sum 31) (char->integer (string-ref text n))) 1000003)))))

(define scale (string->number (car (command-line-arguments))))

;; Entries of many kinds that come and go.
(define (structures rounds)
  (let ((kept (make-vector 3000 #f)))
    (do ((n 0 (+ n 1))) ((= n rounds))
      (vector-set! kept (random-below 3000)
                   (list n (make-string (random-below 300) #\s) (make-vector (random-below 60) n)))
      (when (zero? (modulo n 3)) (vector-set! kept (random-below 3000) #f)))
    (let loop ((n 0) (sum 0))
      (if (= n 3000)
          sum
          (let ((entry (vector-ref kept n)))
            (loop (+ n 1)
                  (if entry (modulo (+ sum (* n (string-length (cadr entry)))) 1000003) sum)))))))

(define (tree depth) (if (zero? depth) '() (cons (tree (- depth 1)) (tree (- depth 1)))))
(define (leaves t) (if (null? t) 1 (+ (leaves (car t)) (leaves (cdr t)))))

(define (counted n make)
  (let loop ((k (- n 1)) (made '())) (if (< k 0) made (loop (- k 1) (cons (make k) made)))))

;; Blocks outside the collector's heap.
(define (foreign rounds)
  (let ((kept (make-vector 500 #f)) (total 0))
    (do ((n 0 (+ n 1))) ((= n rounds) (do ((k 0 (+ k 1))) ((= k 500) total)
                                        (when (vector-ref kept k) (free (vector-ref kept k)))))
      (let ((slot (random-below 500)))
        (when (vector-ref kept slot)
          (set! total (+ total (pointer-u8-ref (vector-ref kept slot))))
          (free (vector-ref kept slot)))
        (let ((block (allocate (+ 1 (random-below 2000)))))
          (pointer-u8-set! block (modulo n 256))
          (vector-set! kept slot block))))))

;; What continuations capture outlives the calls that made it.
(define (generator items)
  (define return #f)
  (define (next)
    (for-each (lambda (item)
                (call/cc (lambda (rest)
                           (set! next (lambda () (rest #f)))
                           (return item))))
              items)
    (return #f))
  (lambda () (call/cc (lambda (back) (set! return back) (next)))))

(define (main)
  (printf "structures ~a~n" (structures (* 6000 scale)))
  (let ((words (counted (* 3000 scale) (lambda (n) (sprintf "w~a-~a" (modulo (* n 7919) 1009) n)))))
    (printf "sorted ~a~n" (hash-text (string-intersperse (sort words string<?) ",")))
    (printf "replaced ~a~n"
            (hash-text (irregex-replace/all "[0-9]+-" (string-intersperse words " ") "x")))
    (printf "symbols ~a~n" (length (map string->symbol words))))
  (printf "big ~a~n" (modulo (expt 3 (* 1000 scale)) 1000000007))
  (printf "digits ~a~n" (string-length (number->string (expt 7 (* 300 scale)))))
  (printf "trees ~a~n" (apply + (counted scale (lambda (n) (leaves (tree 13))))))
  (printf "foreign ~a~n" (foreign (* 3000 scale)))
  (let ((next (generator (counted (* 300 scale) (lambda (n) (make-string (modulo n 90) #\g))))))
    (let loop ((sum 0))
      (let ((item (next)))
        (if item (loop (+ sum (string-length item))) (printf "generated ~a~n" sum)))))
  (printf "vectors ~a~n"
          (apply + (counted (* 20 scale)
                            (lambda (n) (u8vector-ref (make-u8vector (* 1000 (+ n 1)) (modulo n 256)) n)))))
  (gc #t)
  (printf "after collection ~a~n" (structures (* 1500 scale))))

(main)
