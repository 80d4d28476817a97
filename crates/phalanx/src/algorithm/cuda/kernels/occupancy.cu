// Lines 4 and 5: λ̃ of every agent, its utilities there, and their shadow rewards.

// λ̃(s, a) and the discounted totals of sampled channels; what the channel `reward` paid, undiscounted.
KERNEL(count_visits) {
    SHARED(double, memory);
    const long long agent = THREAD;
    if (!IS_OWN(agent)) return;
    const int actions = (int)run->action_count[agent], cells = (int)run->state_count[agent] * actions;
    double *row = run->occupancy + agent;
    u32 *counts = run->counts + agent;
    for (int e = 0; e < OCCUPANCY_ROW; e++) row[e * AGENTS] = 0.0;
    for (int e = 0; e < MAX_CELLS; e++) counts[e * AGENTS] = 0;
#if CHANNELS > 0
    double plain[CHANNELS];
    for (int channel = 0; channel < CHANNELS; channel++) plain[channel] = 0.0;
#endif
    for (int t = 0; t < BATCH; t++) {
        const long long first = BATCH_ROW(t, 0) * AGENTS + agent;
        if (cells <= SMALL_TABLE) {
            const int apart = blockDim.x;
            double *sums = memory + threadIdx.x;
            u32 *seen = (u32 *)(memory + PHASES * SMALL_CELLS * apart) + threadIdx.x;
            visit_small_table(run, first, actions, cells, sums, seen, apart);
            for (int e = 0; e < cells; e++) {
                row[e * AGENTS] += PHASE_TOTAL(sums, e, cells, apart);
                counts[e * AGENTS] += seen[e * apart];
            }
        } else {
            for (int k = 0; k < HORIZON; k++) {
                const pair_t pair = run->pairs[first + (long long)k * AGENTS];
                const int cell = (int)(STATE_OF(pair) * actions + ACTION_OF(pair));
                row[cell * AGENTS] += run->visit_weights[k];
                counts[cell * AGENTS]++;
            }
        }
#if CHANNELS > 0
        for (int channel = 0; channel < CHANNELS; channel++) {
            const float *sampled = run->sampled + (long long)channel * ROWS * AGENTS + first;
            double total = row[(cells + channel) * AGENTS];
            for (int k = 0; k < HORIZON; k++) {
                const double reward = (double)sampled[(long long)k * AGENTS];
                total += run->visit_weights[k] * reward;
                plain[channel] += reward;
            }
            row[(cells + channel) * AGENTS] = total;
        }
#endif
    }
#if RETURN_CHANNEL >= 0
    run->metrics[agent] = plain[RETURN_CHANNEL];
#elif HAS_RETURN
    double earned = -0.0;
    for (int e = 0; e < cells; e++) earned += (double)counts[e * AGENTS] * run->return_table[e * AGENTS + agent];
    run->metrics[agent] = earned;
#else
    run->metrics[agent] = 0.0;
#endif
}

// g̃, r̃, and the running occupancy where there is one.
KERNEL(evaluate_utilities) {
    const long long agent = THREAD;
    if (!IS_OWN(agent)) return;
    const int states = (int)run->state_count[agent], actions = (int)run->action_count[agent];
    const int cells = states * actions, constraints = (int)run->constraint_count[agent];
#if HAS_RUNNING
    for (int e = 0; e < cells + CHANNELS; e++) {
        double *sum = run->running + (long long)e * AGENTS + agent;
        *sum = run->keeps * *sum + (1.0 - run->keeps) * run->occupancy[(long long)e * AGENTS + agent];
        run->occupancy[(long long)e * AGENTS + agent] = *sum / now->running_weight;
    }
#endif
    const double *lambda = run->occupancy + agent;
    const long long problem = (long long)run->problem_of[agent] * UTILITIES;
    double violation_total = 0.0, violation_max = 0.0;
    for (int u = 0; u <= constraints; u++) {
        const struct Utility utility = utility_at(run, problem + u);
        const double value = utility.scale * utility_value(run, &utility, lambda, AGENTS, states, actions) + utility.offset;
        if (u == 0) {
            run->metrics[1 * AGENTS + agent] = value;
        } else {
            const double slack = utility.is_at_most ? utility.threshold - value : value - utility.threshold;
            run->slack[(long long)(u - 1) * AGENTS + agent] = slack;
            // The slack is summed up over agents, too.
            if (!is_finite(slack) || fabs(slack) > run->largest_slack) complain(run, COMPLAINT_SLACK, agent);
            const double violation = clamp(-slack, 0.0, px_infinity()) + 0.0;
            violation_total += violation;
            if (!(violation_max > violation || violation_max != violation_max)) violation_max = violation;
        }
        double *table = run->rewards + (long long)u * REWARD_ROW * AGENTS + agent;
        for (int e = 0; e < CHANNELS; e++) table[(cells + e) * AGENTS] = 0.0;
        utility_gradient(run, &utility, lambda, AGENTS, states, actions, table);
        if (utility.scale != 1.0)
            for (int e = 0; e < cells + CHANNELS; e++) table[e * AGENTS] *= utility.scale;
        double mean = 0.0;
#if IS_CENTRED
        double weighted = 0.0, mass = 0.0, totals = -0.0;
        for (int e = 0; e < cells; e++) {
            weighted += table[e * AGENTS] * lambda[e * AGENTS];
            mass += lambda[e * AGENTS];
        }
        for (int e = cells; e < cells + CHANNELS; e++) totals += table[e * AGENTS] * lambda[e * AGENTS];
        weighted += totals;
        mean = weighted / mass;
#endif
        for (int e = 0; e < cells; e++) {
            table[e * AGENTS] = utility.factor * (table[e * AGENTS] - mean);
            if (!is_finite(table[e * AGENTS])) complain(run, COMPLAINT_REWARD, agent);
        }
        for (int e = cells; e < cells + CHANNELS; e++) {
            table[e * AGENTS] *= utility.factor;
            if (!is_finite(table[e * AGENTS])) complain(run, COMPLAINT_REWARD, agent);
        }
    }
    run->metrics[2 * AGENTS + agent] = violation_total;
    run->metrics[3 * AGENTS + agent] = violation_max;
}
