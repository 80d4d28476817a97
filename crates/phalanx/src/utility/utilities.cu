// The utilities of the library: value and gradient at an occupancy measure, as the Rust of this folder has them.
// An agent's entries are `apart` numbers from each other.

// The kinds are macros with the names of the configuration in capitals; CHANNEL is the total of a sampled channel.

struct Utility {
    int kind, is_at_most, power, channel;
    double scale, offset, threshold, factor, number;
    const double *table, *other;
};

#define UTILITY_FIELDS 11

DEVICE struct Utility utility_at(const struct Run *run, long long at) {
    const double *fields = run->utilities + at * UTILITY_FIELDS;
    struct Utility utility;
    utility.kind = (int)fields[0];
    utility.is_at_most = (int)fields[1];
    utility.power = (int)fields[2];
    utility.channel = (int)fields[3];
    utility.scale = fields[4];
    utility.offset = fields[5];
    utility.threshold = fields[6];
    utility.factor = fields[7];
    utility.number = fields[8];
    utility.table = run->utility_tables + (long long)fields[9];
    utility.other = run->utility_tables + (long long)fields[10];
    return utility;
}

DEVICE double floored(double x) {
    return x < 1e-12 ? 1e-12 : x;
}

// The groups of cells that a marginal counts together: their number, size, and the distance of their cells.
struct Marginal {
    int groups, cells, first, apart;
};

DEVICE struct Marginal marginal_of(int kind, int states, int actions) {
    struct Marginal m;
    if (kind == STATE_ENTROPY) {
        m.groups = states; m.cells = actions; m.first = actions; m.apart = 1;
    } else if (kind == SA_ENTROPY || kind == L2SQ) {
        m.groups = states * actions; m.cells = 1; m.first = 1; m.apart = 1;
    } else {
        m.groups = actions; m.cells = states; m.first = 1; m.apart = actions;
    }
    return m;
}

DEVICE double group_sum(struct Marginal m, int group, const double *lambda, long long apart) {
    double sum = -0.0;
    for (int c = 0; c < m.cells; c++) sum += lambda[(group * m.first + c * m.apart) * apart];
    return sum;
}

DEVICE double box_residual(double x, double low, double high) {
    return x < low ? x - low : x <= high ? 0.0 : x - high;
}

DEVICE double excess(double x, double bound) {
    return x <= bound ? 0.0 : x - bound;
}

DEVICE double of_distance(double distance, int power) {
    return power == 1 ? -distance : -0.5 * distance * distance;
}

DEVICE double dot_table(const double *table, const double *lambda, long long apart, int cells) {
    double sum = -0.0;
    for (int e = 0; e < cells; e++) sum += table[e] * lambda[e * apart];
    return sum;
}

DEVICE double squared_distance(const double *table, const double *lambda, long long apart, int cells) {
    double sum = -0.0;
    for (int e = 0; e < cells; e++) {
        const double d = lambda[e * apart] - table[e];
        sum += d * d;
    }
    return sum;
}

DEVICE double utility_value(const struct Run *run, const struct Utility *utility, const double *lambda, long long apart,
                            int states, int actions) {
    const int cells = states * actions, kind = utility->kind;
    const double q = 1.0 - run->gamma, *table = utility->table;
    double sum = -0.0;
    switch (kind) {
    case LINEAR:
        return dot_table(table, lambda, apart, cells);
    case CHANNEL:
        return lambda[(cells + utility->channel) * apart];
    case STATE_ENTROPY:
    case SA_ENTROPY:
    case ACTION_ENTROPY: {
        const struct Marginal m = marginal_of(kind, states, actions);
        for (int g = 0; g < m.groups; g++) {
            const double d = q * group_sum(m, g, lambda, apart);
            sum += -d * px_ln(floored(d));
        }
        return sum;
    }
    case ACTION_L2SQ:
    case L2SQ: {
        const struct Marginal m = marginal_of(kind, states, actions);
        for (int g = 0; g < m.groups; g++) {
            const double d = group_sum(m, g, lambda, apart);
            sum += d * d;
        }
        return sum;
    }
    case ACTION_L2:
    case ACTIVE_L2: {
        const struct Marginal m = marginal_of(kind, states, actions);
        for (int g = kind == ACTIVE_L2; g < m.groups; g++) {
            const double d = q * group_sum(m, g, lambda, apart);
            sum += 0.5 * (d * d);
        }
        return sum;
    }
    case NEG_L2_EXPERT:
        return -sqrt(squared_distance(table, lambda, apart, cells));
    case NEG_L2SQ_EXPERT:
        return -squared_distance(table, lambda, apart, cells);
    case NEG_KL_EXPERT:
        for (int e = 0; e < cells; e++) {
            const double x = lambda[e * apart];
            sum += q * x * px_ln(floored(q * x) / floored(q * table[e]));
        }
        return -sum;
    case NEG_DIST_BOX:
        for (int e = 0; e < cells; e++) {
            const double r = box_residual(lambda[e * apart], table[e], utility->other[e]);
            sum += r * r;
        }
        return of_distance(sqrt(sum), utility->power);
    case NEG_DIST_HALFSPACE: {
        const double along = excess(dot_table(table, lambda, apart, cells), utility->number);
        return of_distance(along / sqrt(dot_table(table, table, 1, cells)), utility->power);
    }
    default: // NEG_DIST_BALL
        return of_distance(excess(sqrt(squared_distance(table, lambda, apart, cells)), utility->number), utility->power);
    }
}

// From λ − Πλ to the gradient of minus the distance.
DEVICE void residual_to_slope(double *out, long long apart, int cells, int power) {
    double factor = -1.0;
    if (power == 1) {
        double sum = -0.0;
        for (int e = 0; e < cells; e++) sum += out[e * apart] * out[e * apart];
        const double distance = sqrt(sum);
        factor = distance == 0.0 ? 0.0 : -1.0 / distance;
    }
    for (int e = 0; e < cells; e++) out[e * apart] *= factor;
}

DEVICE void utility_gradient(const struct Run *run, const struct Utility *utility, const double *lambda, long long apart,
                             int states, int actions, double *out) {
    const int cells = states * actions, kind = utility->kind;
    const double q = 1.0 - run->gamma, *table = utility->table;
    switch (kind) {
    case LINEAR:
        for (int e = 0; e < cells; e++) out[e * apart] = table[e];
        return;
    case CHANNEL:
        for (int e = 0; e < cells; e++) out[e * apart] = 0.0;
        out[(cells + utility->channel) * apart] = 1.0;
        return;
    case STATE_ENTROPY:
    case SA_ENTROPY:
    case ACTION_ENTROPY:
    case ACTION_L2SQ:
    case L2SQ:
    case ACTION_L2:
    case ACTIVE_L2: {
        const struct Marginal m = marginal_of(kind, states, actions);
        for (int g = 0; g < m.groups; g++) {
            const double sum = group_sum(m, g, lambda, apart);
            double slope;
            if (kind == ACTION_L2SQ || kind == L2SQ) slope = 2.0 * sum;
            else if (kind == ACTION_L2) slope = q * q * sum;
            else if (kind == ACTIVE_L2) slope = g < 1 ? 0.0 : q * q * sum;
            else slope = -q * (px_ln(floored(q * sum)) + 1.0);
            for (int c = 0; c < m.cells; c++) out[(g * m.first + c * m.apart) * apart] = slope;
        }
        return;
    }
    case NEG_L2_EXPERT:
    case NEG_L2SQ_EXPERT:
        for (int e = 0; e < cells; e++) out[e * apart] = lambda[e * apart] - table[e];
        if (kind == NEG_L2_EXPERT) residual_to_slope(out, apart, cells, 1);
        else
            for (int e = 0; e < cells; e++) out[e * apart] *= -2.0;
        return;
    case NEG_KL_EXPERT:
        for (int e = 0; e < cells; e++)
            out[e * apart] = -q * (px_ln(floored(q * lambda[e * apart]) / floored(q * table[e])) + 1.0);
        return;
    case NEG_DIST_BOX:
        for (int e = 0; e < cells; e++) out[e * apart] = box_residual(lambda[e * apart], table[e], utility->other[e]);
        residual_to_slope(out, apart, cells, utility->power);
        return;
    case NEG_DIST_HALFSPACE: {
        const double along = excess(dot_table(table, lambda, apart, cells), utility->number) / dot_table(table, table, 1, cells);
        for (int e = 0; e < cells; e++) out[e * apart] = along * table[e];
        residual_to_slope(out, apart, cells, utility->power);
        return;
    }
    default: { // NEG_DIST_BALL
        double sum = -0.0;
        for (int e = 0; e < cells; e++) {
            out[e * apart] = lambda[e * apart] - table[e];
            sum += out[e * apart] * out[e * apart];
        }
        const double from_center = sqrt(sum), outside = excess(from_center, utility->number);
        const double share = outside == 0.0 ? 0.0 : outside / from_center;
        for (int e = 0; e < cells; e++) out[e * apart] *= share;
        residual_to_slope(out, apart, cells, utility->power);
        return;
    }
    }
}
