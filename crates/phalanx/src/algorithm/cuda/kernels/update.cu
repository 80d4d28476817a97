// Lines 7 and 9: multipliers and parameters; then the numbers of an iteration.

#define PROXIMAL 0
#define DESCENT 1
#define INTEGRAL 2

// Line 7: every agent from its own slacks. Paper: eq:dual_update.
KERNEL(update_duals) {
    const long long agent = THREAD;
    if (!IS_OWN(agent)) return;
    const int constraints = (int)run->constraint_count[agent];
    double total = -0.0, largest = 0.0;
    for (int c = 0; c < constraints; c++) {
        const long long at = (long long)c * AGENTS + agent;
#if HAS_MARGINS
        const double own = run->margins[at];
#else
        const double own = 0.0;
#endif
        const double slope = run->slack_factor * (run->slack[at] - (run->margin + own));
        const double step = now->dual_factor * run->eta_mu * slope;
        double mu;
#if DUAL_KIND == PROXIMAL
        mu = clamp(run->centre - step, 0.0, run->mu_max);
#elif DUAL_KIND == DESCENT
        mu = clamp(run->mu[at] - step, 0.0, run->mu_max);
#else
        mu = clamp(run->integral[at] - step, 0.0, run->mu_max);
        run->integral[at] = clamp(run->integral[at] - now->dual_factor * run->eta_integral * slope, 0.0, run->mu_max);
#endif
        run->mu[at] = mu;
        if (!is_finite(mu)) complain(run, COMPLAINT_MU, agent);
        total += mu;
        largest = fmax(largest, mu);
    }
    run->metrics[4 * AGENTS + agent] = total;
    run->metrics[5 * AGENTS + agent] = largest;
}

// Line 9: one parameter per thread. Paper: eq:policy_update.
KERNEL(ascend) {
    const long long e = THREAD;
    if (e >= run->parameters) return;
    const double g = run->gradient[e];
    double theta = run->theta[e];
#if IS_ADAM
    const double m = run->beta0 * run->first[e] + run->rest0 * g;
    const double v = run->beta1 * run->second[e] + run->rest1 * g * g;
    run->first[e] = m;
    run->second[e] = v;
    theta -= now->rate * (m * now->correction0) / (sqrt(v * now->correction1) + run->epsilon);
#else
    theta += now->rate * g;
#endif
#if HAS_BOX
    theta = clamp(theta, run->box_low, run->box_high);
#endif
    run->theta[e] = theta;
    // Which agent's it is, the host finds out.
    if (!is_finite(theta)) atomic_min(&run->complaints[COMPLAINT_THETA], 0u);
}

// Agents in groups of 256, in order; then the groups, in order: as `AgentMetrics::fold`.
#define METRICS 7
#define FOLD 256

DEVICE double and_metric(int which, double a, double b) {
    if (which == 3) return a > b || a != a ? a : b;
    if (which == 5) return fmax(a, b);
    return a + b;
}

DEVICE double metric_of(const struct Run *run, int which, long long agent) {
    return which == 6 ? run->gradient_squares[agent] : run->metrics[which * AGENTS + agent];
}

// A group per block.
KERNEL(fold_agents) {
    SHARED(double, memory);
    const long long first = (long long)blockIdx.x * FOLD;
    const int count = (int)(AGENTS - first < FOLD ? AGENTS - first : FOLD);
    for (int which = 0; which < METRICS; which++) {
        if (threadIdx.x < count) {
            const double metric = metric_of(run, which, first + threadIdx.x);
            if (!is_finite(metric * (double)AGENTS)) complain(run, COMPLAINT_METRICS + which, first + threadIdx.x);
            memory[which * FOLD + threadIdx.x] = metric;
        }
    }
    SYNC();
    if (threadIdx.x < METRICS) {
        double sum = 0.0;
        for (int at = 0; at < count; at++) sum = and_metric(threadIdx.x, sum, memory[threadIdx.x * FOLD + at]);
        run->group_metrics[(long long)threadIdx.x * run->groups + blockIdx.x] = sum;
    }
}

// All groups, in one block.
KERNEL(fold_groups) {
    SHARED(double, memory);
    double sum = 0.0;
    for (long long first = 0; first < run->groups; first += FOLD) {
        const int count = (int)(run->groups - first < FOLD ? run->groups - first : FOLD);
        for (int which = 0; which < METRICS; which++)
            if (threadIdx.x < count)
                memory[which * FOLD + threadIdx.x] = run->group_metrics[(long long)which * run->groups + first + threadIdx.x];
        SYNC();
        if (threadIdx.x < METRICS)
            for (int at = 0; at < count; at++) sum = and_metric(threadIdx.x, sum, memory[threadIdx.x * FOLD + at]);
        SYNC();
    }
    if (threadIdx.x < METRICS) run->summary[threadIdx.x] = sum;
}
