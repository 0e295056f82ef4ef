(* GCBench (gcbench.c) in OCaml: the same trees in the same order, the same lines on standard output. *)

type node = { mutable left : node; mutable right : node; height : int; mark : int }

(* What stands for no node. *)
let rec none = { left = none; right = none; height = -1; mark = 0 }
let nodes = ref 0

let new_node left right height =
  incr nodes;
  { left; right; height; mark = height lxor 0x5a }

let tree_size depth = (1 lsl (depth + 1)) - 1

let rec populate root =
  if root.height > 0 then begin
    root.left <- new_node none none (root.height - 1);
    root.right <- new_node none none (root.height - 1);
    populate root.left;
    populate root.right
  end

let rec build depth =
  if depth = 0 then new_node none none 0
  else
    let left = build (depth - 1) in
    let right = build (depth - 1) in
    new_node left right depth

let rec intact root =
  if root == none then 0
  else (if root.mark = root.height lxor 0x5a then 1 else 0) + intact root.left + intact root.right

let () =
  let argument place default =
    if place < Array.length Sys.argv then int_of_string Sys.argv.(place) else default
  in
  let stretch = argument 1 18 and long_lived = argument 2 16 and elements = argument 3 500000 in
  let shallowest = argument 4 4 and deepest = argument 5 16 and rounds = argument 6 1 in
  ignore (Sys.opaque_identity (build stretch));
  Printf.printf "stretch tree of depth %d\n" stretch;
  let tree = new_node none none long_lived in
  populate tree;
  let array = Array.make elements 0.0 in
  for i = 0 to (elements / 2) - 1 do
    array.(i) <- 1.0 /. float_of_int (i + 1)
  done;
  Printf.printf "long-lived tree of depth %d and array of %d doubles\n" long_lived elements;
  for _ = 1 to rounds do
    let depth = ref shallowest in
    while !depth <= deepest do
      let trees = 2 * tree_size stretch / tree_size !depth in
      for _ = 1 to trees do
        populate (new_node none none !depth)
      done;
      for _ = 1 to trees do
        ignore (Sys.opaque_identity (build !depth))
      done;
      Printf.printf "depth %d: %d trees from the root, as many from the leaves\n" !depth trees;
      depth := !depth + 2
    done
  done;
  let found = intact tree in
  let wrong = ref 0 in
  for i = 0 to (elements / 2) - 1 do
    if array.(i) <> 1.0 /. float_of_int (i + 1) then incr wrong
  done;
  Printf.printf "%d nodes made; of the long-lived, %d of %d nodes and all but %d doubles are intact\n" !nodes found
    (tree_size long_lived) !wrong;
  if found <> tree_size long_lived || !wrong <> 0 then exit 1
