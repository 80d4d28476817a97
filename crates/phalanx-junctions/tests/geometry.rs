//! Are lengths and crossings the same bits as CityFlow's?

mod support;

use phalanx_junctions::Network;
use serde_json::Value;
use std::path::Path;

fn bits(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap(), 16).unwrap()
}

fn compare(folder: &Path) {
    for net in support::nets(folder) {
        let network = Network::read(&support::net_file(folder, &net, "roadnet.json")).unwrap();
        let wanted: Value = serde_json::from_str(&support::net_file(folder, &net, "geometry.json")).unwrap();

        let junctions: Vec<_> = (0..network.junctions().len()).map(|j| network.junction_id(j)).collect();
        assert_eq!(Value::from(junctions), wanted["junctions"], "{net}");
        let ids: Vec<_> = (0..network.drivable_count()).map(|d| network.drivable_id(d)).collect();
        assert_eq!(Value::from(ids), wanted["drivables"], "{net}");
        for (drivable, length) in wanted["length"].as_array().unwrap().iter().enumerate() {
            assert_eq!(network.lengths()[drivable].to_bits(), bits(length), "{net}: drivable {drivable}");
        }
        let mut count = 0;
        for (link, crossings) in wanted["crosses"].as_array().unwrap().iter().enumerate() {
            let link = network.lane_count() + link;
            let wanted: Vec<_> = crossings.as_array().unwrap().iter().collect();
            let found = network.crossings(link);
            assert_eq!(found.len(), wanted.len(), "{net}: link {link}");
            for (found, wanted) in found.iter().zip(wanted) {
                assert_eq!(u64::from(found.other), wanted[0].as_u64().unwrap(), "{net}: link {link}");
                assert_eq!(found.distance.to_bits(), bits(&wanted[1]), "{net}: link {link}");
                assert_eq!(found.other_distance.to_bits(), bits(&wanted[2]), "{net}: link {link}");
                count += 1;
            }
        }
        println!("{net}: {} lengths and {count} crossings are equal", network.drivable_count());
    }
}

#[test]
fn shipped_networks_have_the_geometry_of_the_reference() {
    compare(&support::shipped());
}

#[test]
fn networks_beside_the_checkout_have_the_geometry_of_the_reference() {
    if let Some(folder) = support::beside_the_checkout() {
        compare(&folder);
    }
}
