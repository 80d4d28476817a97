//! Drives of a platoon.

use std::path::Path;

use phalanx::Error;
use phalanx::world::platoon::motion::{CRASHED, Convoy, GAINS, LEAST_HEADWAY, Vehicle};

use super::{Row, as_in_python, rows};

/// Columns of a drive; the first four behind the step have to be there.
const COLUMNS: &str =
    "step,actions,lead_speed,headway,speed,reward,train_reward,sum_reward,running_sum,collided,done";
const LEAD: &str = "lead_speed";
const HEADWAY: &str = "headway";
const SPEED: &str = "speed";

/// Steps of a drive, and those between two times at which one with a collision may end: the published ones.
const STEPS: usize = 600;
const BATCH: usize = 60;

/// No drive comes near these, in metres and metres per second.
const FARTHEST: f64 = 1e5;
const FASTEST: f64 = 1e3;

/// The drive in the form of its file, with the numbers of all vehicles in every step.
pub fn replay(file: &Path, text: &str) -> Result<String, Error> {
    let needed: Vec<&str> = COLUMNS.split(',').skip(1).take(4).collect();
    let (start, rows) = rows(file, text, &needed)?;
    let mut convoy = begin(&start)?;
    let n = convoy.vehicles.len();
    let mut text = format!("{COLUMNS}\n0,,{},,,,0.0,0,0\n", moment(&convoy));
    let mut running = 0.0;
    for (number, row) in rows.enumerate() {
        let (row, step) = (row?, number + 1);
        let actions = row.actions(n, GAINS.len() as u8, "vehicles")?;
        convoy.step(&actions, lead(&row)?);
        let [reward, training] = rewards(&convoy);
        let sum = pairwise_sum(&reward);
        running += sum;
        let is_over = step >= STEPS || convoy.is_crashed && step.is_multiple_of(BATCH);
        let [collided, done] = [convoy.is_crashed, is_over].map(u8::from);
        let digits: String = actions.iter().map(|&action| char::from(b'0' + action)).collect();
        let [sum, running] = [sum, running].map(as_in_python);
        text += &format!(
            "{step},{digits},{},{},{},{sum},{running},{collided},{done}\n",
            moment(&convoy),
            joined(reward),
            joined(training)
        );
    }
    Ok(text)
}

/// The start that the first row states.
fn begin(row: &Row<'_>) -> Result<Convoy, Error> {
    let (headways, speeds) = (row.numbers(HEADWAY)?, row.numbers(SPEED)?);
    if headways.len() != speeds.len() {
        let message = format!("{} speeds for {} headways", speeds.len(), headways.len());
        return Err(row.blame(SPEED, message));
    }
    let vehicle = |(&headway, &speed): (&f64, &f64)| {
        Ok(Vehicle {
            // Below it the drive would begin with a collision.
            headway: row.between(HEADWAY, headway, [LEAST_HEADWAY, FARTHEST])?,
            speed: row.between(SPEED, speed, [0.0, FASTEST])?,
            acceleration: 0.0,
        })
    };
    let vehicles = headways.iter().zip(&speeds).map(vehicle).collect::<Result<_, Error>>()?;
    Ok(Convoy { vehicles, lead: lead(row)?, is_crashed: false })
}

fn lead(row: &Row<'_>) -> Result<f64, Error> {
    row.between(LEAD, row.number(LEAD)?, [0.0, FASTEST])
}

/// What every vehicle earned in the last step, as published and with the penalty of training.
fn rewards(convoy: &Convoy) -> [Vec<f64>; 2] {
    let earned = |vehicle: &Vehicle| if convoy.is_crashed { [CRASHED, 0.0] } else { vehicle.reward() };
    let both: Vec<[f64; 2]> = convoy.vehicles.iter().map(earned).collect();
    // Adding nothing makes no zero negative, as in the published environment.
    [
        both.iter().map(|[driven, _]| driven + 0.0).collect(),
        both.iter().map(|[driven, close]| driven + close).collect(),
    ]
}

/// Leader, headways and speeds.
fn moment(convoy: &Convoy) -> String {
    let of = |number: fn(&Vehicle) -> f64| joined(convoy.vehicles.iter().map(number));
    format!("{},{},{}", as_in_python(convoy.lead), of(|vehicle| vehicle.headway), of(|vehicle| vehicle.speed))
}

fn joined(numbers: impl IntoIterator<Item = f64>) -> String {
    numbers.into_iter().map(as_in_python).collect::<Vec<_>>().join(";")
}

/// The sum as NumPy forms it: eight sums side by side, and halves of what is long.
fn pairwise_sum(numbers: &[f64]) -> f64 {
    const LANES: usize = 8;
    const LONGEST: usize = 128;
    if numbers.len() < LANES {
        return numbers.iter().fold(-0.0, |sum, number| sum + number);
    }
    if numbers.len() > LONGEST {
        let half = numbers.len() / 2;
        let (first, second) = numbers.split_at(half - half % LANES);
        return pairwise_sum(first) + pairwise_sum(second);
    }
    let (rows, rest) = numbers.as_chunks::<LANES>();
    let mut lanes = rows[0];
    for row in &rows[1..] {
        lanes.iter_mut().zip(row).for_each(|(lane, number)| *lane += number);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(sum, |sum, number| sum + number)
}
