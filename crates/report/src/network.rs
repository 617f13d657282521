//! A drawing of links and the routes through them.

use maud::{Markup, html};

use crate::colour::Colour;

/// Links and routes.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// A sentence on it, for those who do not see it too.
    pub about: String,
    /// The links.
    pub links: Vec<NetworkLink>,
    /// The routes, each from the left to the right.
    pub routes: Vec<Route>,
}

/// A link.
#[derive(Clone, Debug)]
pub struct NetworkLink {
    /// Its name.
    pub name: String,
    /// Rate and delay.
    pub about: String,
    /// All that is known of it.
    pub whole: String,
}

/// A route of a flow.
#[derive(Clone, Debug)]
pub struct Route {
    /// What stands where it begins.
    pub name: String,
    /// The links it crosses, by index, in order.
    pub links: Vec<usize>,
    /// Its colour.
    pub colour: Colour,
    /// Thin and dashed.
    pub minor: bool,
}

/// Pixels: a link's box, its head with the name, a route in it, the space between rows, a letter of a name, and
/// what a route has before its first link and behind its last.
const BOX: usize = 168;
const HEAD: usize = 44;
const LANE: usize = 15;
const BELOW: usize = 22;
const LETTER: usize = 7;
const END: usize = 26;
/// Between columns of links.
const BETWEEN: usize = 72;
/// Letters of a name at most.
const LETTERS: usize = 22;

/// Where a link stands.
struct Place {
    x: usize,
    y: usize,
    height: usize,
}

impl Network {
    /// The column of each link: after all links that a route crosses before it.
    fn columns(&self) -> Vec<usize> {
        let mut columns = vec![0; self.links.len()];
        // As often as there are links, as routes may cross them in a circle.
        for _ in 0..self.links.len() {
            for route in &self.routes {
                for pair in route.links.windows(2) {
                    columns[pair[1]] = columns[pair[1]].max(columns[pair[0]] + 1);
                }
            }
        }
        let most = self.links.len().saturating_sub(1);
        columns.into_iter().map(|column| column.min(most)).collect()
    }

    /// What the names of routes take that begin at the first column, or at a later one.
    fn names(&self, columns: &[usize], later: bool) -> usize {
        let begins =
            |route: &&Route| route.links.first().is_some_and(|&link| (columns[link] > 0) == later);
        let letters = |route: &Route| short(&route.name).chars().count();
        let most = self.routes.iter().filter(begins).map(letters).max();
        most.map_or(0, |letters| 16 + LETTER * letters)
    }

    fn through(&self, link: usize) -> Vec<usize> {
        let crosses = |&route: &usize| self.routes[route].links.contains(&link);
        (0..self.routes.len()).filter(crosses).collect()
    }

    fn places(&self) -> Vec<Place> {
        let columns = self.columns();
        let first = self.names(&columns, false) + END;
        let between = BETWEEN + self.names(&columns, true);
        let mut order: Vec<usize> = (0..self.links.len()).collect();
        // In the order of the first route through each.
        order.sort_by_key(|&link| self.through(link).first().copied().unwrap_or(usize::MAX));
        let mut below = vec![0; self.links.len()];
        let mut places: Vec<Place> =
            (0..self.links.len()).map(|_| Place { x: 0, y: 0, height: 0 }).collect();
        for link in order {
            let column = columns[link];
            let height = HEAD + LANE * self.through(link).len() + 6;
            let y = below[column];
            below[column] += height + BELOW;
            places[link] = Place { x: first + column * (BOX + between), y, height };
        }
        let tallest = below.iter().copied().max().unwrap_or(0);
        for (link, place) in places.iter_mut().enumerate() {
            place.y += (tallest - below[columns[link]]) / 2;
        }
        places
    }

    /// As SVG.
    pub(crate) fn svg(&self) -> Markup {
        let places = self.places();
        let lane = |link: usize, route: usize| {
            let number = self.through(link).iter().position(|&other| other == route);
            places[link].y + HEAD + LANE * number.unwrap_or(0) + LANE / 2
        };
        let right = places.iter().map(|place| place.x + BOX + END).max().unwrap_or(END);
        let height = places.iter().map(|place| place.y + place.height).max().unwrap_or(0) + 2;
        let width = right + 12;
        // From before the first link to behind the last, and in the links.
        let path = |route: usize| {
            let links = &self.routes[route].links;
            let ends = links.first().zip(links.last());
            let Some((&first, &last)) = ends else { return String::new() };
            let mut path = format!("M{} {}", places[first].x - END, lane(first, route));
            for pair in links.windows(2) {
                let (from, to) = (places[pair[0]].x + BOX, places[pair[1]].x);
                let (y, middle) = (lane(pair[0], route), (from + to) / 2);
                let next = lane(pair[1], route);
                path += &format!(" H{from} C{middle} {y} {middle} {next} {to} {next}");
            }
            path + &format!(" H{}", places[last].x + BOX + END)
        };
        let within = |route: usize| -> String {
            let one = |&link: &usize| format!("M{} {} h{BOX} ", places[link].x, lane(link, route));
            self.routes[route].links.iter().map(one).collect()
        };
        let class = |route: &Route| {
            format!("route {}{}", route.colour.class(), if route.minor { " minor" } else { "" })
        };
        html! {
            div.drawing tabindex="0" role="group" aria-label="drawing of the network, scrolls sideways" {
                svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img"
                    aria-label=(self.about) {
                    title { (self.about) }
                    // What passes a link without crossing it is behind it.
                    @for (number, route) in self.routes.iter().enumerate() {
                        g class=(class(route)) { path d=(path(number)) {} }
                    }
                    @for (link, place) in self.links.iter().zip(&places) {
                        g.link {
                            title { (link.whole) }
                            rect x=(place.x) y=(place.y) width=(BOX) height=(place.height) rx="7" {}
                            text.name x=(place.x + BOX / 2) y=(place.y + 17) { (short(&link.name)) }
                            text.about x=(place.x + BOX / 2) y=(place.y + 33) { (link.about) }
                        }
                    }
                    @for (number, route) in self.routes.iter().enumerate() {
                        @if let Some((&first, &last)) = route.links.first().zip(route.links.last()) {
                            g class=(class(route)) {
                                title { (route.name) }
                                path d=(within(number)) {}
                                text x=(places[first].x - END - 6) y=(lane(first, number) + 4) { (short(&route.name)) }
                                path.head d=(format!("M{} {} l9 4.5 l-9 4.5 z", places[last].x + BOX + END, lane(last, number) as f64 - 4.5)) {}
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A name that fits its space.
fn short(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        return name.into();
    }
    name.chars().take(LETTERS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(links: usize, routes: &[&[usize]]) -> Network {
        let link = |number: usize| NetworkLink {
            name: format!("l{number}"),
            about: String::new(),
            whole: String::new(),
        };
        let route = |links: &&[usize]| Route {
            name: "r".into(),
            links: links.to_vec(),
            colour: Colour::Number(0),
            minor: false,
        };
        Network {
            about: String::new(),
            links: (0..links).map(link).collect(),
            routes: routes.iter().map(route).collect(),
        }
    }

    #[test]
    fn links_stand_after_those_before_them_and_never_on_each_other() {
        let network = network(4, &[&[0, 1, 3], &[2, 3], &[2]]);
        assert_eq!(network.columns(), [0, 1, 0, 2]);
        let places = network.places();
        assert!(places[2].y >= places[0].y + places[0].height + BELOW);
    }

    #[test]
    fn a_circle_of_links_is_drawn_too() {
        let network = network(2, &[&[0, 1], &[1, 0]]);
        assert!(network.columns().iter().all(|&column| column < 2));
        assert!(network.svg().into_string().contains("</svg>"));
    }
}
