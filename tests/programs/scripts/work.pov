// Spheres by the hundred, solids cut from one another, a mesh, fields and functions; no file beside.
#version 3.7;
global_settings { assumed_gamma 1.0 max_trace_level 8 }

#declare Chance = seed(7);
#declare Stone = texture {
    pigment { granite color_map { [0.0 rgb <0.3, 0.25, 0.2>] [1.0 rgb <0.9, 0.85, 0.7>] } scale 0.7 }
    normal { bumps 0.4 scale 0.08 }
    finish { diffuse 0.8 specular 0.3 }
}
#declare Glass = material {
    texture { pigment { rgbf <0.8, 0.9, 1.0, 0.85> } finish { reflection 0.15 specular 0.8 } }
    interior { ior 1.4 }
}

camera { location <3 * sin(clock), 5, -11> look_at <0, 1.2, 0> angle 42 }
light_source { <18, 30, -20> rgb 1 area_light <5, 0, 0>, <0, 0, 5>, 3, 3 adaptive 1 }
light_source { <-25, 12, -10> rgb <0.25, 0.25, 0.35> }
sky_sphere {
    pigment { gradient y color_map { [0 rgb <0.8, 0.85, 0.95>] [1 rgb <0.15, 0.25, 0.6>] } }
}
fog { distance 90 rgb <0.7, 0.75, 0.85> }
plane { y, 0 pigment { checker rgb 0.85, rgb <0.2, 0.3, 0.4> } finish { reflection 0.1 } }

// What declares a union of many parts allocates each of them.
#declare Count = 0;
union {
    #while (Count < 900)
        #declare Angle = Count * 2.39996;
        #declare Far = 2.2 + sqrt(Count) * 0.13;
        sphere {
            <Far * cos(Angle), 0.12 + 0.1 * rand(Chance), Far * sin(Angle)>, 0.06 + 0.09 * rand(Chance)
            pigment { rgb <rand(Chance), rand(Chance), rand(Chance)> }
            finish { phong 0.6 }
        }
        #declare Count = Count + 1;
    #end
}

difference {
    superellipsoid { <0.4, 0.4> scale 1.2 }
    sphere { 0, 1.35 }
    cylinder { -2 * x, 2 * x, 0.5 }
    cylinder { -2 * z, 2 * z, 0.5 }
    texture { Stone }
    rotate 30 * y
    translate <-2.2, 1.2, 0.5>
}

isosurface {
    function { x * x + y * y + z * z - 1 + 0.25 * sin(9 * x) * sin(9 * y) * sin(9 * z) }
    contained_by { sphere { 0, 1.4 } }
    max_gradient 6
    pigment { marble turbulence 0.6 color_map { [0 rgb <0.6, 0.2, 0.2>] [1 rgb <0.95, 0.9, 0.8>] } }
    finish { specular 0.4 }
    translate <0.2, 1.3, 1.2>
}

blob {
    threshold 0.6
    #declare Count = 0;
    #while (Count < 40)
        sphere { <rand(Chance) - 0.5, rand(Chance) * 2, rand(Chance) - 0.5>, 0.45, 1 }
        #declare Count = Count + 1;
    #end
    material { Glass }
    translate <2.4, 0.4, -0.6>
}

#declare Steps = 90;
#macro Height(X, Z) (0.35 * sin(X * 0.31) * cos(Z * 0.27) + 0.12 * sin(X * Z * 0.01)) #end
mesh {
    #declare Row = 0;
    #while (Row < Steps)
        #declare Column = 0;
        #while (Column < Steps)
            triangle {
                <Column, Height(Column, Row), Row>,
                <Column + 1, Height(Column + 1, Row), Row>,
                <Column, Height(Column, Row + 1), Row + 1>
            }
            triangle {
                <Column + 1, Height(Column + 1, Row), Row>,
                <Column + 1, Height(Column + 1, Row + 1), Row + 1>,
                <Column, Height(Column, Row + 1), Row + 1>
            }
            #declare Column = Column + 1;
        #end
        #declare Row = Row + 1;
    #end
    pigment { bozo color_map { [0 rgb <0.2, 0.5, 0.2>] [1 rgb <0.6, 0.7, 0.4>] } scale 7 }
    translate <-Steps / 2, 0, 0>
    scale <0.25, 1, 0.12>
    translate <0, 0.5, 5>
}

height_field {
    function 160, 160 { 0.5 + 0.3 * sin(x * 17) * cos(y * 13) + 0.1 * sin(61 * x * y) }
    smooth
    texture { Stone }
    translate <-0.5, 0, -0.5>
    scale <2.4, 0.7, 2.4>
    translate <-1.2, 0, -3.2>
}

lathe {
    cubic_spline 6, <0, -0.1>, <0.6, 0>, <0.25, 0.5>, <0.5, 1>, <0.1, 1.5>, <0, 1.8>
    pigment { wood turbulence 0.05 scale 0.2 color_map { [0 rgb <0.4, 0.2, 0.1>] [1 rgb <0.7, 0.45, 0.2>] } }
    translate <1.2, 0, -2.6>
}
