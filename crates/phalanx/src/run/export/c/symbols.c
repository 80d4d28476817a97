/* Every member's state as the vector that stands for it. */
static void law_of_symbols(const struct agent *own, const unsigned char *states, double *probabilities)
{
    float x[WIDEST], y[WIDEST];
    const struct network *network = own->network;
    int m, k;
    for (m = 0; m < own->members; m++)
        for (k = 0; k < network->dimension; k++)
            x[m * network->dimension + k] = network->embedding[states[m] * network->dimension + k];
    law_of_layers(own, x, y, probabilities);
}
