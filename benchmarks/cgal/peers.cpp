// CGAL's own smoothing of a point set, to hold our versions against.
//
// Build: g++ -O2 -DNDEBUG -DCGAL_EIGEN3_ENABLED -I/usr/include/eigen3 peers.cpp -o peers
// Run:   peers jet K < in.xyz > out.xyz
//        peers bilateral K < in.xyz > out.xyz    (normals by jets over K points, MST-oriented, 25 degrees)
//        peers wlop ITERATIONS < in.xyz > out.xyz  (all points kept, CGAL's default radius)
// Row i of the output is row i of the input, moved.

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <CGAL/Simple_cartesian.h>
#include <CGAL/bilateral_smooth_point_set.h>
#include <CGAL/jet_estimate_normals.h>
#include <CGAL/jet_smooth_point_set.h>
#include <CGAL/mst_orient_normals.h>
#include <CGAL/wlop_simplify_and_regularize_point_set.h>

using Kernel = CGAL::Simple_cartesian<double>;
using Point = Kernel::Point_3;
using Vector = Kernel::Vector_3;
using Sequential = CGAL::Sequential_tag;

// CGAL reorders points when it orients normals and before WLOP: each one carries its row along.
struct Row {
  Point position;
  Vector normal;
  std::size_t number;
  bool operator==(const Row& other) const { return number == other.number; }
};

template <class Value, Value Row::*member>
struct Member_map {
  using key_type = Row;
  using value_type = Value;
  using reference = const Value&;
  using category = boost::read_write_property_map_tag;
  friend reference get(const Member_map&, const Row& row) { return row.*member; }
  friend void put(const Member_map&, Row& row, const Value& value) { row.*member = value; }
};

using Positions = Member_map<Point, &Row::position>;
using Normals = Member_map<Vector, &Row::normal>;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: peers jet|bilateral|wlop NUMBER < in.xyz > out.xyz\n";
    return 2;
  }
  const std::string method = argv[1];
  const unsigned int number = std::strtoul(argv[2], nullptr, 10);

  std::vector<Row> rows;
  for (double x, y, z; std::cin >> x >> y >> z;)
    rows.push_back({Point(x, y, z), Vector(0, 0, 0), rows.size()});

  const auto positions = CGAL::parameters::point_map(Positions());
  const auto both = CGAL::parameters::point_map(Positions()).normal_map(Normals());
  if (method == "jet") {
    CGAL::jet_smooth_point_set<Sequential>(rows, number, positions);
  } else if (method == "bilateral") {
    CGAL::jet_estimate_normals<Sequential>(rows, number, both);
    CGAL::mst_orient_normals(rows, number, both);
    CGAL::bilateral_smooth_point_set<Sequential>(
        rows, number,
        CGAL::parameters::point_map(Positions()).normal_map(Normals()).sharpness_angle(25.));
  } else if (method == "wlop") {
    std::vector<Point> moved;
    CGAL::wlop_simplify_and_regularize_point_set<Sequential>(
        rows, std::back_inserter(moved),
        CGAL::parameters::point_map(Positions()).select_percentage(100.).number_of_iterations(
            number));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].position = moved[i];
  } else {
    std::cerr << "unknown method " << method << "\n";
    return 2;
  }

  std::vector<Point> result(rows.size());
  for (const Row& row : rows) result[row.number] = row.position;
  std::cout.precision(17);
  for (const Point& p : result) std::cout << p.x() << ' ' << p.y() << ' ' << p.z() << '\n';
}
