;; GCBench (gcbench.c) in Scheme, for Guile: the same trees in the same order, the same lines on standard output.
(use-modules (srfi srfi-4) (srfi srfi-9) (ice-9 format))

(define-record-type <node>
  (new-node left right height mark)
  node?
  (left left set-left!)
  (right right set-right!)
  (height height)
  (mark mark))

(define nodes 0)

(define (make-node left right height)
  (set! nodes (+ nodes 1))
  (new-node left right height (logxor height #x5a)))

(define (tree-size depth) (- (ash 1 (+ depth 1)) 1))

(define (populate root)
  (let ((height (height root)))
    (unless (= height 0)
      (set-left! root (make-node #f #f (- height 1)))
      (set-right! root (make-node #f #f (- height 1)))
      (populate (left root))
      (populate (right root)))))

(define (build depth)
  (if (= depth 0)
      (make-node #f #f 0)
      (let* ((left (build (- depth 1)))
             (right (build (- depth 1))))
        (make-node left right depth))))

(define (intact root)
  (if root
      (+ (if (= (mark root) (logxor (height root) #x5a)) 1 0) (intact (left root)) (intact (right root)))
      0))

(define (param place default)
  (let ((arguments (command-line)))
    (if (< place (length arguments)) (string->number (list-ref arguments place)) default)))

(define (main)
  (let ((stretch (param 1 18)) (long-lived (param 2 16)) (elements (param 3 500000))
        (shallowest (param 4 4)) (deepest (param 5 16)) (rounds (param 6 1)))
    (build stretch)
    (format #t "stretch tree of depth ~d\n" stretch)
    (let ((tree (make-node #f #f long-lived))
          (array (make-f64vector elements 0.0))
          (half (quotient elements 2)))
      (populate tree)
      (do ((i 0 (+ i 1))) ((= i half)) (f64vector-set! array i (/ 1.0 (+ i 1))))
      (format #t "long-lived tree of depth ~d and array of ~d doubles\n" long-lived elements)
      (do ((round 0 (+ round 1))) ((= round rounds))
        (do ((depth shallowest (+ depth 2))) ((> depth deepest))
          (let ((trees (quotient (* 2 (tree-size stretch)) (tree-size depth))))
            (do ((i 0 (+ i 1))) ((= i trees)) (populate (make-node #f #f depth)))
            (do ((i 0 (+ i 1))) ((= i trees)) (build depth))
            (format #t "depth ~d: ~d trees from the root, as many from the leaves\n" depth trees))))
      (let ((found (intact tree)) (wrong 0))
        (do ((i 0 (+ i 1))) ((= i half))
          (unless (= (f64vector-ref array i) (/ 1.0 (+ i 1))) (set! wrong (+ wrong 1))))
        (format #t "~d nodes made; of the long-lived, ~d of ~d nodes and all but ~d doubles are intact\n"
                nodes found (tree-size long-lived) wrong)
        (force-output)
        (unless (and (= found (tree-size long-lived)) (= wrong 0)) (exit 1))))))

(main)
