/* The smaller of its cap and the sum, over some members, of what their states stand for. */
static long digit_of(const struct digit *digit, const unsigned char *states)
{
    long sum = 0;
    int k;
    for (k = 0; k < digit->count; k++)
        sum += values[digit->first_value + states[places[digit->first_place + k]]];
    return sum < digit->cap ? sum : digit->cap;
}

/* The sum of the rows that the terms name. */
static void law_of_terms(const struct agent *own, const unsigned char *states, double *probabilities)
{
    int t, d, k;
    for (k = 0; k < own->actions; k++)
        probabilities[k] = 0.0;
    for (t = 0; t < own->terms; t++) {
        const struct term *term = &terms[own->first_term + t];
        long row = term->row;
        for (d = 0; d < term->count; d++) {
            const struct digit *digit = &digits[term->first_digit + d];
            row += digit->stride * digit_of(digit, states);
        }
        for (k = 0; k < own->actions; k++)
            probabilities[k] += own->numbers[row * own->actions + k];
    }
    softmax(probabilities, own->actions);
}
