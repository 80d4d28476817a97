/* The row of the joint state, the last member's state running fastest. */
static void law_of_table(const struct agent *own, const unsigned char *states, double *probabilities)
{
    const double *row;
    long number = 0;
    int k;
    for (k = 0; k < own->members; k++)
        number = number * members[own->first_member + k].states + states[k];
    row = own->numbers + number * own->actions;
    for (k = 0; k < own->actions; k++)
        probabilities[k] = row[k];
}
