# Surfaces and curves as text, `frames` of each.
set terminal dumb 100 40
set samples 400
set isosamples 60
set hidden3d
do for [at=1:frames] {
    splot sin(sqrt(x*x + y*y) + at) / (1 + 0.1*at) notitle
    plot sin(at*x) / (abs(x) + 1) smooth csplines notitle, cos(x*at) with impulses notitle
}
